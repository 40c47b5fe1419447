"""Sources of a comparison: run folders, team files, pretrained teams, and JSON files of evaluations."""

import dataclasses
import inspect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from icmape.errors import UserError, printable
from icmape.evaluation.evaluation_files import described_problem, read_card, read_evaluation, short, text
from icmape.evaluation.foreign import is_foreign, read_foreign
from icmape.evaluation.methods import Member, Method, Tick
from icmape.evaluation.metrics import Evaluation
from icmape.evaluation.results import CachedEvaluations
from icmape.evaluation.stop_curves import StopCurve, stop_curve, why_no_curve
from icmape.io import file_digest, read_bounded
from icmape.json_text import parse
from icmape.learning.run_files import read_metrics
from icmape.play.team import Team
from icmape.play.team_files import About, about, load, pretrained
from icmape.problem import Problem, check_worlds
from icmape.problem.entry import problem_classes, problem_name
from icmape.problem.spec import check_changes, describe, is_centralized, problem_digest, rates_of

USUAL_DELTA = 0.1  # if no source has one


class Posed(NamedTuple):
    """The problem of a team, by name. Centralized and decentralized versions are comparable."""

    kind: str
    arguments: dict[str, Any]
    centralized: bool = False
    unreliable: dict[str, float] | None = None  # rates of failures

    def __str__(self) -> str:
        shown = {name: value for name, value in self.arguments.items() if isinstance(value, int)}
        odd = {name: value for name, value in self.arguments.items() if value != _defaults(self.kind).get(name)}
        words = ", ".join(f"{name} {value}" for name, value in (shown | odd).items())
        failing = "".join(f", {name} {rate:g}" for name, rate in (self.unreliable or {}).items())
        return printable((f"{self.kind} ({words})" if words else self.kind) + failing)

    def same(self, other: "Posed") -> bool:
        """Whether results on both problems are comparable."""
        return (self.kind, self.arguments, self.unreliable) == (other.kind, other.arguments, other.unreliable)


def posed(described: dict[str, Any], problem_class: type[Problem] | None = None) -> Posed:
    """A problem as a file describes it, with defaults for missing arguments."""
    kind, classes = described["kind"], _classes(problem_class)
    if kind in classes:
        check_changes(classes[kind], described["arguments"])
    values = _defaults(kind, problem_class) | described["arguments"]
    return Posed(kind, values, is_centralized(described), rates_of(described))


def _classes(problem_class: type[Problem] | None) -> dict[str, type[Problem]]:
    """Problem classes by name, with one that is not part of icmape."""
    return {**problem_classes(), **({problem_name(problem_class): problem_class} if problem_class else {})}


def _defaults(kind: str, problem_class: type[Problem] | None = None) -> dict[str, Any]:
    classes = _classes(problem_class)
    parameters = inspect.signature(classes[kind]).parameters.values() if kind in classes else ()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in defaults.items()}


@dataclass(frozen=True)
class Source:
    """A method before it is judged: team files to play, or existing evaluations."""

    given: str
    name: str
    teams: tuple[About, ...]
    members: tuple[Member, ...]
    problems: tuple[Posed, ...]  # of every team that has one
    folder: Path | None = None  # of the run
    changes: tuple[tuple[str, Any], ...] = ()  # changed arguments of its problem
    remark: str = ""  # on its worlds
    built: tuple[Team, ...] = ()  # team objects

    @property
    def deltas(self) -> set[float]:
        """The values of δ of its teams; external results may have none."""
        stated = {member.evaluation.delta for member in self.members if not math.isnan(member.evaluation.delta)}
        return {team.delta for team in self.teams} | {team.delta for team in self.built} | stated

    def for_target(self, delta: float) -> "Source":
        """The source with this δ in its evaluations."""
        judged = [dataclasses.replace(member.evaluation, delta=delta) for member in self.members]
        members = [dataclasses.replace(m, evaluation=e) for m, e in zip(self.members, judged, strict=True)]
        return dataclasses.replace(self, members=tuple(members))


def read_source(
    source: str | Team, problem_class: type[Problem] | None = None, changes: Mapping[str, Any] | None = None
) -> Source:
    """Read a source without playing. `problem_class` is needed for a problem that is not part of icmape.

    `changes` replace arguments of the problem in the team files.
    """
    if isinstance(source, Team):
        check_worlds(source.problem)
        problem, name = posed(describe(source.problem, local=False), problem_class), own_name(source)
        return Source(str(source), name, (), (), (problem,), remark=source.problem.remark, built=(source,))
    path = Path(source)
    if path.is_dir():
        return _run_source(source, path, problem_class, changes or {})
    if path.suffix == ".json":
        return _file_source(source, path, problem_class)
    if not path.is_file() and source not in pretrained():
        raise UserError(
            f"{source} is nothing that can be compared: expected a run's folder, a team file, an evaluation's JSON "
            f"file or a pretrained team ({', '.join(pretrained())})"
        )
    team = about(source)
    name = source if not path.is_file() else f"{path.parent.name} {path.stem}".strip()
    folder = path.parent if (path.parent / "config.json").exists() else None
    return _played(source, name, [team], problem_class, folder, changes or {})


def _run_source(source: str, folder: Path, problem_class: type[Problem] | None, changes: Mapping[str, Any]) -> Source:
    teams = [about(path) for path in sorted(folder.glob("team-*.safetensors"))]
    if not teams:
        raise UserError(
            f"{folder} holds no teams (team-SEED.safetensors): is its run finished? `icmape resume {folder}`"
        )
    return _played(source, folder.resolve().name, teams, problem_class, folder, changes)


def _played(
    source: str,
    name: str,
    teams: list[About],
    problem_class: type[Problem] | None,
    folder: Path | None,
    changes: Mapping[str, Any],
) -> Source:
    problems = tuple(_changed(posed(team.problem, problem_class), changes) for team in teams)
    available = {*problem_classes(), problem_name(problem_class) if problem_class else ""}
    if missing := [problem.kind for problem in problems if problem.kind not in available]:
        raise UserError(f"{source} is for {missing[0]}, which is not part of icmape: add --problem {missing[0]}")
    for team in teams:
        built = _load(team, problem_class, changes).problem  # fail now, not after other teams were played
        check_worlds(built)
    return Source(source, name, tuple(teams), (), problems, folder, tuple(changes.items()), built.remark)


def _changed(problem: Posed, changes: Mapping[str, Any]) -> Posed:
    classes = problem_classes()
    local = classes[problem.kind].LOCAL if problem.kind in classes else frozenset()
    shared = {name: value for name, value in {**problem.arguments, **changes}.items() if name not in local}
    return problem._replace(arguments=shared)


def _file_source(source: str, path: Path, problem_class: type[Problem] | None) -> Source:
    """A file of an evaluation: metrics of one team, of several under "teams", or external results."""
    try:
        content = parse(read_bounded(path))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} is not an evaluation: it holds no JSON that can be read ({error})") from error
    try:
        if is_foreign(content):
            return _foreign_source(source, content, problem_class)
        results = content["teams"] if isinstance(content, dict) and "teams" in content else {"": content}
        if not isinstance(results, dict) or not results:
            raise UserError(f"teams must hold evaluations by name; given {short(results)}")
        members = tuple(_member(result) for result in results.values())
        named = [described_problem(result["problem"]) for result in results.values() if "problem" in result]
        problems = tuple(posed(problem, problem_class) for problem in named)
    except UserError as error:
        raise UserError(
            f"{path}: {error}"
            if is_foreign(content)
            else f"{path} is not an evaluation: expected what `icmape evaluate ... --out FILE.json` writes, or results "
            f"of others with name, problem, accuracy, tau and episodes ({error})"
        ) from error
    return Source(source, printable(path.stem), (), members, problems)


def _foreign_source(source: str, content: dict[str, Any], problem_class: type[Problem] | None) -> Source:
    foreign = read_foreign(content)
    member = Member(foreign.name, foreign.evaluation, foreign.seconds, outcomes=foreign.outcomes)
    remark = f"computed elsewhere: {foreign.evaluation.episodes:,} episodes"
    return Source(source, foreign.name, (), (member,), (posed(foreign.problem, problem_class),), remark=remark)


def _member(result: Any) -> Member:
    evaluation, card = read_evaluation(result), read_card(result)
    return _with_cost(text(result, "team") if "team" in result else "", evaluation, card, card)


def _with_cost(name: str, evaluation: Evaluation, cost: dict[str, Any], card: dict[str, Any]) -> Member:
    return Member(name, evaluation, cost.get("seconds"), cost.get("environment_steps"), card)


def check_comparable(sources: Sequence[Source]) -> tuple[Posed | None, float]:
    """The common problem and δ of all sources; raises `UserError` if two differ."""
    stated = [(source, problem) for source in sources for problem in source.problems]
    for source, problem in stated[1:]:
        if not problem.same(stated[0][1]):
            raise UserError(
                f"{stated[0][0].given} is for {stated[0][1]} and {source.given} for {problem}: accuracy and τ on "
                "different problems cannot be compared; give them to separate comparisons"
            )
    deltas = [(source, delta) for source in sources for delta in sorted(source.deltas)]
    for source, delta in deltas[1:]:
        if delta != deltas[0][1]:
            raise UserError(
                f"{deltas[0][0].given} was made for δ = {deltas[0][1]:g} and {source.given} for δ = {delta:g}: a team "
                "that may err more often stops earlier; give them to separate comparisons"
            )
    return (stated[0][1] if stated else None), (deltas[0][1] if deltas else USUAL_DELTA)


def judge(
    source: Source,
    episodes: int,
    seed: int,
    *,
    problem_class: type[Problem] | None = None,
    tick: Tick | None = None,
) -> Method:
    """Evaluate the teams of a source and their curves, with a cache in the folder of its run."""
    members = list(source.members)
    cache = CachedEvaluations(source.folder, episodes, seed) if source.folder else None
    for team in source.teams:
        loaded = _load(team, problem_class, dict(source.changes))
        digest = f"{file_digest(team.path)} {problem_digest(loaded.problem)}"
        result, curve = cache.get(team.path.stem, digest) if cache else (None, None)
        if result is None or (curve is None and not why_no_curve(loaded)):
            result, curve = _judged(loaded, episodes, seed, tick)
            if cache:
                cache.put(team.path.stem, digest, result, curve)
        elif tick:
            tick(2 * episodes)
        member = _with_cost(team.path.stem, result, _cost(team, source.folder), team.card)
        members.append(dataclasses.replace(member, curve=curve))
    for built in source.built:
        result, curve = _judged(built, episodes, seed, tick)
        card = json.loads(built.card)
        members.append(dataclasses.replace(_with_cost(source.name, result, card, card), curve=curve))
    return Method(source.name, source.given, tuple(members), "; ".join(_remarks(source, episodes, seed)))


def _judged(team: Team, episodes: int, seed: int, tick: Tick | None) -> tuple[Evaluation, StopCurve | None]:
    """Evaluation and curve in the same worlds; None for a team without a curve."""
    result = team.evaluate(episodes=episodes, seed=seed, tick=tick)
    if why_no_curve(team):
        if tick:
            tick(episodes)
        return result, None
    curve = stop_curve(team, episodes=episodes, seed=seed, tick=tick)
    return result, StopCurve.from_dict(curve.to_dict())  # rounded in the same way whether it was stored or not


def own_name(team: Team) -> str:
    """The name of a team object."""
    named = json.loads(team.card).get("baseline")
    return str(named or getattr(team.policy, "kind", type(team.policy).__name__))


def _load(team: About, problem_class: type[Problem] | None, changes: Mapping[str, Any]) -> Team:
    fits = problem_class is not None and problem_name(problem_class) == team.problem["kind"]
    return load(team.path, problem_class if fits else None, **changes)


def _cost(team: About, folder: Path | None) -> dict[str, Any]:
    """Wall time and environment steps, from the metrics of the run or else the card of the team."""
    rows = read_metrics(folder / "metrics.jsonl") if folder else []
    of_seed = [row for row in rows if f"team-{row['seed']}" == team.path.stem]
    return of_seed[-1] if of_seed else team.card


def _remarks(source: Source, episodes: int, seed: int) -> list[str]:
    remarks = ["centralized"] if any(problem.centralized for problem in source.problems) else []
    remarks += [source.remark] if source.remark else []
    worlds = {(m.evaluation.episodes, m.evaluation.seed) for m in source.members if m.evaluation.seed >= 0}
    for count, own_seed in sorted(worlds - {(episodes, seed)}):
        remarks.append(f"on other worlds: {count:,}, seed {own_seed}")
    for team in source.teams:
        done, planned = team.card.get("iterations"), team.card.get("configuration", {}).get("iterations")
        if done is not None and planned is not None and done < planned:
            remarks.append(f"not finished: {done:,} of {planned:,} iterations")
            break
    remarks += sorted({device for team in source.teams if "CPU" not in (device := str(team.card.get("device", "CPU")))})
    if not source.problems:
        remarks.append("its file does not name its problem")
    return remarks
