"""Options that commands share, and the teams, baselines and problems that they name."""

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from icmape.errors import UserError
from icmape.learning.presets import preset, presets
from icmape.play.team import Team
from icmape.play.team_files import about, load, pretrained
from icmape.plot.terminal import out, say
from icmape.problem import Problem
from icmape.problem.entry import problem_classes
from icmape.problem.sizes import check_size
from icmape.problem.spec import check_changes, load_class
from icmape.problem.unreliable import failing

DIGITS, LONGEST = 16, 10_000  # of a number, and of a list, in --set
PARAMETERS = ("rounds", "level", "delta")  # of baselines


@dataclass(frozen=True, kw_only=True)
class ProblemOptions:
    """Options of every command on teams."""

    problem: str | None = None
    """module:Class of a problem that is not part of icmape, if the teams were trained on one."""
    data: tuple[str, ...] = ()
    """Files or folders of measurements, for problems whose worlds come from data."""
    set: tuple[str, ...] = ()
    """NAME=VALUE ...: arguments of the problem to change, such as years=2019."""

    @property
    def problem_class(self) -> type[Problem] | None:
        """Class of --problem."""
        return None if self.problem is None else load_class(self.problem)

    @property
    def changes(self) -> dict[str, Any]:
        """Changed arguments of the problem."""
        return changes_of(self.data, self.set)


@dataclass(frozen=True, kw_only=True)
class BaselineOptions(ProblemOptions):
    """Options of commands that also take baselines."""

    team: tyro.conf.Positional[str | None] = None
    problem: str | None = None
    """module:Class of a problem that is not part of icmape: that of the team, or one to use instead of a preset."""
    baseline: str | None = None
    """Baseline for the preset's problem (`icmape list`), or module:Class of your own: called with problem and δ."""
    rounds: int | None = None
    """Of the baseline: stop after this many rounds of data."""
    level: float | None = None
    """Of the baseline: stop once its posterior, or 1 - the expected gain of another round, reaches this level."""
    delta: float | None = None
    """Of the baseline: δ, so that its target is 1-δ; by default 0.1."""


def changes_of(data: Sequence[str], assignments: Sequence[str]) -> dict[str, Any]:
    """Arguments of a problem to be changed: `--data PATHS` and `--set NAME=VALUE ...`."""
    changes: dict[str, Any] = {"data": list(data)} if data else {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name:
            raise UserError(f"--set takes NAME=VALUE, such as years=2019 or noise=0.1; given {assignment!r}")
        changes[name] = _value(text)
    return changes


def _value(text: str) -> Any:
    """A typed value: JSON, a list of years such as 2001-2003,2005, or else the text."""
    parts = text.split(",")
    spans = [part.split("-") for part in parts]
    if all(1 <= len(span) <= 2 and all(end.isdigit() for end in span) for span in spans) and (
        len(parts) > 1 or len(spans[0]) == 2
    ):
        ends = [(int(span[0]), int(span[-1])) for span in spans if max(map(len, span)) < DIGITS]
        if len(ends) < len(spans) or sum(last - first for first, last in ends) > LONGEST:
            raise UserError(f"--set takes lists of at most {LONGEST:,} numbers; given {text[:40]}")
        return [year for first, last in ends for year in range(first, last + 1)]
    try:
        return [float(part) for part in parts] if len(parts) > 1 and text[0] not in "[{" else json.loads(text)
    except ValueError:
        return text


def fitting_changes(problem: type[Problem], changes: dict[str, Any]) -> dict[str, Any]:
    """Changes in the types of a problem's arguments: a single value becomes a list where one is expected."""
    parameters = inspect.signature(problem).parameters
    listed = {name for name in changes if name in parameters and "Sequence" in str(parameters[name].annotation)}
    typed = {n: [v] if n in listed and not isinstance(v, list) and v is not None else v for n, v in changes.items()}
    return dict(check_changes(problem, typed))


def load_changed(source: str, problem: type[Problem] | None, changes: dict[str, Any]) -> Team:
    """A team with changed arguments of its problem. Without --data, fetched data is used."""
    with out.status(f"loading {source}: a few seconds"):
        team = load(source, problem, **typed_changes([source], problem, changes))
    local = team.problem.unwrapped.found_locally()
    if team.problem.has_worlds or not local:
        return team
    say("found here: " + ", ".join(f"{name} {value}" for name, value in local.items()))
    return load(source, problem, **typed_changes([source], problem, {**changes, **local}))


def typed_changes(sources: Sequence[str], problem: type[Problem] | None, changes: dict[str, Any]) -> dict[str, Any]:
    """Changes in the types of the problem's arguments; without a class, the problem of the first team file."""
    if not changes:
        return {}
    paths = [path for source in sources if not source.endswith(".json") for path in team_paths(source)]
    kind = problem or (problem_classes().get(about(paths[0]).problem["kind"]) if paths else None)
    return fitting_changes(kind, changes) if kind else changes


def chosen_teams(name: str, options: ProblemOptions) -> Iterator[tuple[str, str, Team]]:
    """Name, path and team of every team file that a name refers to."""
    for path in team_paths(name):
        yield Path(path).stem, path, load_changed(path, options.problem_class, options.changes)


def chosen_baseline(options: BaselineOptions, rates: Mapping[str, float] | None = None) -> tuple[str, str, Team]:
    """Name, title and team of a baseline, built for a problem with these rates of failures."""
    from icmape.baselines.registry import baseline_team

    problem = failing(chosen_problem(options.team, options.problem, options.changes), **(rates or {}))
    settings = {name: value for name in PARAMETERS if (value := getattr(options, name)) is not None}
    team = baseline_team(str(options.baseline), problem, **settings)
    title = " ".join([str(options.baseline), *(f"{name} {value:g}" for name, value in settings.items())])
    return title, f"{title} on {options.team or options.problem}", team


def chosen_problem(name: str | None, path: str | None, changes: dict[str, Any]) -> Problem:
    """The problem of a preset or of module:Class, with changed arguments."""
    problem_class = load_class(str(path)) if name is None else preset(name).problem
    arguments = {} if name is None else preset(name).arguments
    try:
        return check_size(problem_class(**{**arguments, **fitting_changes(problem_class, changes)}))
    except (TypeError, ValueError) as error:
        if name is not None:
            raise UserError(f"{name} cannot be built with {changes}: {error}") from error
        raise UserError(f"--problem {path} cannot be built without arguments: {error}") from error


def team_paths(name: str) -> list[str]:
    """The team files that a name refers to: all of a run's folder, or the name itself."""
    folder = Path(name)
    if not folder.is_dir():
        if name in presets() and name not in pretrained() and not folder.exists():
            raise UserError(
                f"no trained team ships for {name} yet: make one with `icmape train {name}`, or judge a baseline "
                f"with `icmape evaluate {name} --baseline NAME`"
            )
        return [name]
    paths = sorted(map(str, folder.glob("team-*.safetensors")))
    if not paths:
        raise UserError(
            f"{folder} holds no teams (team-SEED.safetensors): is its run finished? `icmape resume {folder}`"
        )
    return paths


def check_choice(options: BaselineOptions) -> str:
    """Refuse options that exclude each other, before anything is loaded. Returns the name of the team or preset."""
    if options.baseline:
        if (options.team is None) == (options.problem is None):
            raise UserError(
                f"--baseline {options.baseline} needs a problem: give a PRESET ({', '.join(presets())}) or "
                "--problem module:Class, one of them"
            )
        return options.team or ""
    if options.team is None:
        raise UserError("give a team file, a run's folder or a pretrained team's name; or a PRESET and --baseline NAME")
    for name in PARAMETERS:
        if getattr(options, name) is not None:
            raise UserError(f"--{name} sets up a baseline: it goes with --baseline NAME (a team file has its own)")
    return options.team
