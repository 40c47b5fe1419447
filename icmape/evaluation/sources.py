"""What a comparison is given: run folders, team files, pretrained teams, and the JSON files of evaluations."""

import dataclasses
import hashlib
import inspect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from icmape.errors import UserError
from icmape.evaluation.foreign import is_foreign, read_foreign
from icmape.evaluation.methods import Member, Method, Tick
from icmape.evaluation.metrics import Evaluation
from icmape.evaluation.results import CachedEvaluations
from icmape.learning.run_files import read_metrics
from icmape.play.team import Team
from icmape.play.team_files import About, about, load, pretrained
from icmape.problem import Problem, check_worlds
from icmape.problem.entry import problem_classes, problem_name
from icmape.problem.spec import describe, is_centralized

USUAL_DELTA = 0.1  # where nobody says it


class Posed(NamedTuple):
    """The problem that a team was made for, by name; who sees whose data is no part of it."""

    kind: str
    arguments: dict[str, Any]
    centralized: bool = False

    def __str__(self) -> str:
        shown = {name: value for name, value in self.arguments.items() if isinstance(value, int)}
        odd = {name: value for name, value in self.arguments.items() if value != _defaults(self.kind).get(name)}
        words = ", ".join(f"{name} {value}" for name, value in (shown | odd).items())
        return f"{self.kind} ({words})" if words else self.kind

    def same(self, other: "Posed") -> bool:
        """Whether answers to both can be compared."""
        return (self.kind, self.arguments) == (other.kind, other.arguments)


def posed(described: dict[str, Any], own: type[Problem] | None = None) -> Posed:
    """A problem as a file describes it, with the defaults of arguments that it leaves out."""
    kind = described["kind"]
    return Posed(kind, _defaults(kind, own) | described["arguments"], is_centralized(described))


def _defaults(kind: str, own: type[Problem] | None = None) -> dict[str, Any]:
    known = {**problem_classes(), **({problem_name(own): own} if own else {})}
    parameters = inspect.signature(known[kind]).parameters.values() if kind in known else ()
    found = {p.name: p.default for p in parameters if p.default is not p.empty}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


@dataclass(frozen=True)
class Source:
    """One method before it is judged: team files to be played, or evaluations that are there already."""

    given: str
    name: str
    teams: tuple[About, ...]
    members: tuple[Member, ...]
    problems: tuple[Posed, ...]  # of every team that says it
    folder: Path | None = None  # of the run
    changes: tuple[tuple[str, Any], ...] = ()  # arguments of its problem that are not those of its files
    remark: str = ""  # on its worlds
    built: tuple[Team, ...] = ()  # teams that are no files

    @property
    def deltas(self) -> set[float]:
        """δ of its teams; results that others computed need not say it."""
        stated = {member.evaluation.delta for member in self.members if not math.isnan(member.evaluation.delta)}
        return {team.delta for team in self.teams} | {team.delta for team in self.built} | stated

    def for_target(self, delta: float) -> "Source":
        """The same with δ where it was not stated."""
        judged = [dataclasses.replace(member.evaluation, delta=delta) for member in self.members]
        members = [dataclasses.replace(m, evaluation=e) for m, e in zip(self.members, judged, strict=True)]
        return dataclasses.replace(self, members=tuple(members))


def read_source(
    given: str | Team, own: type[Problem] | None = None, changes: Mapping[str, Any] | None = None
) -> Source:
    """Find out what was given. Nothing is played; `own` is the class of a problem that is not part of icmape.

    `changes` are arguments of the teams' problem to be taken instead of those in their files.
    """
    if isinstance(given, Team):
        check_worlds(given.problem)
        problem, name = posed(describe(given.problem, local=False), own), own_name(given)
        return Source(str(given), name, (), (), (problem,), remark=given.problem.remark, built=(given,))
    path = Path(given)
    if path.is_dir():
        return _run_source(given, path, own, changes or {})
    if path.suffix == ".json":
        return _file_source(given, path, own)
    if not path.is_file() and given not in pretrained():
        raise UserError(
            f"{given} is nothing that can be compared: expected a run's folder, a team file, an evaluation's JSON file "
            f"or a pretrained team ({', '.join(pretrained())})"
        )
    team = about(given)
    name = given if not path.is_file() else f"{path.parent.name} {path.stem}".strip()
    folder = path.parent if (path.parent / "config.json").exists() else None
    return _played(given, name, [team], own, folder, changes or {})


def _run_source(given: str, folder: Path, own: type[Problem] | None, changes: Mapping[str, Any]) -> Source:
    found = [about(path) for path in sorted(folder.glob("team-*.safetensors"))]
    if not found:
        raise UserError(
            f"{folder} holds no teams (team-SEED.safetensors): is its run finished? `icmape resume {folder}`"
        )
    return _played(given, folder.resolve().name, found, own, folder, changes)


def _played(
    given: str,
    name: str,
    teams: list[About],
    own: type[Problem] | None,
    folder: Path | None,
    changes: Mapping[str, Any],
) -> Source:
    problems = tuple(_changed(posed(team.problem, own), changes) for team in teams)
    for problem in problems:
        if problem.kind not in problem_classes() and (own is None or problem_name(own) != problem.kind):
            raise UserError(f"{given} is for {problem.kind}, which is not part of icmape: add --problem {problem.kind}")
    for team in teams:
        made = _load(team, own, changes).problem  # what is broken is refused now, not after others were played
        check_worlds(made)
    return Source(given, name, tuple(teams), (), problems, folder, tuple(changes.items()), made.remark)


def _changed(problem: Posed, changes: Mapping[str, Any]) -> Posed:
    known = problem_classes()
    local = known[problem.kind].LOCAL if problem.kind in known else frozenset()
    kept = {name: value for name, value in {**problem.arguments, **changes}.items() if name not in local}
    return problem._replace(arguments=kept)


def _file_source(given: str, path: Path, own: type[Problem] | None) -> Source:
    """An evaluation's file: one team's numbers, those of several under "teams", or results that others computed."""
    try:
        content = json.loads(path.read_text())
        if is_foreign(content):
            return _foreign_source(given, path, content, own)
        results = list(content["teams"].values()) if "teams" in content else [content]
        members = tuple(_member(result) for result in results)
        problems = tuple(posed(result["problem"], own) for result in results if "problem" in result)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} is not an evaluation: expected what `icmape evaluate ... --out FILE.json` writes, or results of "
            f"others with name, problem, accuracy, tau and episodes ({error!r})"
        ) from error
    return Source(given, path.stem, (), members, problems)


def _foreign_source(given: str, path: Path, content: dict[str, Any], own: type[Problem] | None) -> Source:
    try:
        found = read_foreign(content)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    member = Member(found.name, found.evaluation, found.seconds, outcomes=found.outcomes)
    remark = f"computed elsewhere: {found.evaluation.episodes:,} episodes"
    return Source(given, found.name, (), (member,), (posed(found.problem, own),), remark=remark)


def _member(result: dict[str, Any]) -> Member:
    numbers = {field.name: result[field.name] for field in dataclasses.fields(Evaluation)}
    card = result.get("provenance") or {}
    return _with_cost(str(result["team"]), Evaluation(**numbers), card, card)


def _with_cost(name: str, evaluation: Evaluation, cost: dict[str, Any], card: dict[str, Any]) -> Member:
    return Member(name, evaluation, cost.get("seconds"), cost.get("environment_steps"), card)


def check_comparable(sources: Sequence[Source]) -> tuple[Posed | None, float]:
    """The one problem and the one δ of all sources, or an error that names two which differ."""
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
    own: type[Problem] | None = None,
    tick: Tick | None = None,
) -> Method:
    """Play what was not played yet, and keep a run's evaluations in its folder."""
    members = list(source.members)
    cache = CachedEvaluations(source.folder, episodes, seed) if source.folder else None
    for team in source.teams:
        digest = _digest(team.path, own, dict(source.changes))
        result = cache.get(team.path.stem, digest) if cache else None
        if result is None:
            result = _load(team, own, dict(source.changes)).evaluate(episodes=episodes, seed=seed, tick=tick)
            if cache:
                cache.put(team.path.stem, digest, result)
        elif tick:
            tick(episodes)
        members.append(_with_cost(team.path.stem, result, _cost(team, source.folder), team.card))
    for built in source.built:
        result = built.evaluate(episodes=episodes, seed=seed, tick=tick)
        card = json.loads(built.card)
        members.append(_with_cost(source.name, result, card, card))
    return Method(source.name, source.given, tuple(members), "; ".join(_remarks(source, episodes, seed)))


def own_name(team: Team) -> str:
    """What a team is called that was given as it is."""
    named = json.loads(team.card).get("baseline")
    return str(named or getattr(team.policy, "kind", type(team.policy).__name__))


def _load(team: About, own: type[Problem] | None, changes: Mapping[str, Any]) -> Team:
    return load(team.path, own if own and problem_name(own) == team.problem["kind"] else None, **changes)


def _digest(path: Path, own: type[Problem] | None, changes: Mapping[str, Any]) -> str:
    """A hash of a team file, of what was changed, and of the code of a problem that is not part of icmape."""
    code = Path(inspect.getfile(own)).read_bytes() if own else b""
    changed = json.dumps(changes).encode() if changes else b""
    return hashlib.sha256(path.read_bytes() + code + changed).hexdigest()


def _cost(team: About, folder: Path | None) -> dict[str, Any]:
    """Wall time and environment steps by the run's metrics, or else by the team's card."""
    rows = read_metrics(folder / "metrics.jsonl") if folder else []
    mine = [row for row in rows if f"team-{row['seed']}" == team.path.stem]
    return mine[-1] if mine else team.card


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
