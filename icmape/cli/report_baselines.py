"""The baselines of `icmape report`, and the curves of its teams in the same worlds."""

from collections.abc import Mapping, Sequence
from typing import Any

from icmape.evaluation.beside import Beside, Standing, curve_beside, measure, named, problem_of_baselines, usual
from icmape.evaluation.results import Store, code_digest
from icmape.evaluation.stop_curves import StopCurve, why_no_curve
from icmape.imports import is_path
from icmape.play.team import Team
from icmape.plot.progress import phases_shown
from icmape.plot.terminal import out, say
from icmape.problem.spec import describe, problem_digest

Teams = Mapping[str, Sequence[tuple[str, Team]]]
"""The teams of each method, with the hashes of their files."""


def standing(store: Store, teams: Teams, baselines: Sequence[str], worlds: int, seed: int) -> Standing | None:
    """Teams and baselines at the same accuracy; None without baselines, and if the first method has no curve."""
    digest, first = next(iter(teams.values()))[0]
    rules, worlds = _baselines(store, digest, first, baselines, worlds, seed)
    if not rules:
        return None
    methods = {}
    for label, built in teams.items():
        with out.status(f"{label}: the same worlds with other stops"):
            curves = [_team_curve(store, digest, team, worlds, seed, 1 - first.delta) for digest, team in built]
        if None not in curves:
            methods[label] = [curve for curve in curves if curve is not None]
    if next(iter(teams)) not in methods:  # the others are compared with it
        say(f"baselines are left out: {why_no_curve(first)}")
        return None
    return Standing(methods, rules, worlds, 1 - first.delta)


def chosen_baselines(team: Team, names: Sequence[str]) -> dict[str, tuple[str, str | Team]]:
    """The named baselines, or the usual ones; raises `UserError` for names that do not fit the team's problem."""
    if list(names) == ["none"]:
        return {}
    return named(team, names) if names else usual(team)


def _baselines(
    store: Store, digest: str, team: Team, names: Sequence[str], worlds: int, seed: int
) -> tuple[list[Beside], int]:
    """Baselines with their curves, and how many worlds each was played in. They are stored, but those of own code."""
    found, problem = chosen_baselines(team, names), problem_of_baselines(team.problem)
    if not found:
        return [], worlds
    own = any(isinstance(built, str) and is_path(built) for _, built in found.values())
    file = f"baselines-{digest}-{'-'.join(found)}.json".replace("/", "-").replace(":", "-")
    question: dict[str, Any] = {
        **{"team": digest, "problem": describe(problem), "data": problem_digest(problem), "code": code_digest()},
        **{"delta": team.delta, "worlds": worlds, "seed": seed, "named": bool(names)},
    }
    content = None if own else store.read(file, question)
    if content is None:
        with phases_shown(f"baselines: {', '.join(found)} (seconds to a minute each)"):
            rules, worlds = measure(found, problem, delta=team.delta, worlds=worlds, seed=seed, in_time=not names)
        content = {"worlds": worlds, "rules": [rule.to_dict() for rule in rules]}
        if not own:
            store.write(file, question, content)
    rules = [Beside.from_dict(values) for values in content["rules"]]
    for rule in rules:
        tau = rule.curve.tau
        reached = f"τ {tau:.2f} at {1 - team.delta:g}" if tau is not None else f"at most {rule.curve.best.accuracy:.3f}"
        say(f"{rule.label}: {reached}")
    return rules, content["worlds"]


def _team_curve(store: Store, digest: str, team: Team, worlds: int, seed: int, target: float) -> StopCurve | None:
    """The curve of a team in the worlds of the baselines, stored; None if it has none."""
    problem = {"problem": describe(team.problem), "data": problem_digest(team.problem), "code": code_digest()}
    question = {"team": digest, **problem, "worlds": worlds, "seed": seed, "target": target}
    content = store.read(f"curve-{digest}.json", question)
    if content is None:
        curve = curve_beside(team, worlds, seed, target)
        content = {"curve": curve and curve.to_dict()}
        store.write(f"curve-{digest}.json", question, content)
    return None if content["curve"] is None else StopCurve.from_dict(content["curve"])
