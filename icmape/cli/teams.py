"""What a command is told to judge or to watch: team files, runs, pretrained teams and baselines."""

import inspect
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from icmape.errors import UserError
from icmape.learning.presets import preset, presets
from icmape.play.team import Team
from icmape.play.team_files import about, load, pretrained
from icmape.plot.terminal import say
from icmape.problem import Problem
from icmape.problem.entry import problem_classes
from icmape.problem.spec import check_changes, load_class


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
    """What was typed: JSON where it is that; 2001-2003,2005 is a list of years; else the text itself."""
    parts = text.split(",")
    spans = [part.split("-") for part in parts]
    if all(1 <= len(span) <= 2 and all(end.isdigit() for end in span) for span in spans) and (
        len(parts) > 1 or len(spans[0]) == 2
    ):
        return [year for span in spans for year in range(int(span[0]), int(span[-1]) + 1)]
    try:
        return [float(part) for part in parts] if len(parts) > 1 and text[0] not in "[{" else json.loads(text)
    except ValueError:
        return text


def fitting_changes(problem: type[Problem], changes: dict[str, Any]) -> dict[str, Any]:
    """Changes in the types that a problem's arguments have: a single value stands for a list of one."""
    parameters = inspect.signature(problem).parameters
    listed = {n for n in check_changes(problem, changes) if "Sequence" in str(parameters[n].annotation)}
    return {n: [v] if n in listed and not isinstance(v, list) and v is not None else v for n, v in changes.items()}


def load_changed(source: str, problem: type[Problem] | None, changes: dict[str, Any]) -> Team:
    """A team whose problem has some arguments changed; data that was fetched before stands for data not given."""
    team = load(source, problem, **typed_changes([source], problem, changes))
    local = team.problem.unwrapped.found_locally()
    if team.problem.has_worlds or not local:
        return team
    say("found here: " + ", ".join(f"{name} {value}" for name, value in local.items()))
    return load(source, problem, **typed_changes([source], problem, {**changes, **local}))


def typed_changes(sources: Sequence[str], problem: type[Problem] | None, changes: dict[str, Any]) -> dict[str, Any]:
    """Changes in the types that the problem of these teams takes: that of the first which is a team's file."""
    if not changes:
        return {}
    paths = [path for source in sources if not source.endswith(".json") for path in team_paths(source)]
    kind = problem or (problem_classes().get(about(paths[0]).problem["kind"]) if paths else None)
    return fitting_changes(kind, changes) if kind else changes


def chosen_teams(
    name: str, problem_path: str | None, changes: dict[str, Any] | None = None
) -> Iterator[tuple[str, str, Team]]:
    """Name, title and team of all that a name stands for."""
    problem = None if problem_path is None else load_class(problem_path)
    for path in team_paths(name):
        yield Path(path).stem, path, load_changed(path, problem, changes or {})


def chosen_baseline(args: dict[str, Any]) -> tuple[str, str, Team]:
    """The same for a baseline: it is a team like any other."""
    from icmape.baselines.registry import baseline_team

    problem = chosen_problem(args["team"], args["problem"], changes_of(args["data"], args["set"]))
    settings = {name: args[name] for name in ("rounds", "level", "delta") if args[name] is not None}
    team = baseline_team(args["baseline"], problem, **settings)
    title = " ".join([args["baseline"], *(f"{name} {value:g}" for name, value in settings.items())])
    return title, f"{title} on {args['team'] or args['problem']}", team


def chosen_problem(name: str | None, path: str | None, changes: dict[str, Any]) -> Problem:
    """The problem of a preset, or what module:Class makes, with some arguments changed."""
    problem_class = load_class(str(path)) if name is None else preset(name).problem
    arguments = {} if name is None else preset(name).arguments
    try:
        return problem_class(**{**arguments, **fitting_changes(problem_class, changes)})
    except (TypeError, ValueError) as error:
        if name is not None:
            raise UserError(f"{name} cannot be built with {changes}: {error}") from error
        raise UserError(f"--problem {path} cannot be built without arguments: {error}") from error


def team_paths(name: str) -> list[str]:
    """The team files that a name stands for: all of a run's folder, or itself."""
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


def check_choice(args: dict[str, Any]) -> None:
    """Refuse what does not go together, before anything is loaded."""
    if args["baseline"]:
        if (args["team"] is None) == (args["problem"] is None):
            raise UserError(
                f"--baseline {args['baseline']} needs a problem: give a PRESET ({', '.join(presets())}) or "
                "--problem module:Class, one of them"
            )
        return
    if args["team"] is None:
        raise UserError("give a team file, a run's folder or a pretrained team's name; or a PRESET and --baseline NAME")
    for name in ("rounds", "level", "delta"):
        if args[name] is not None:
            raise UserError(f"--{name} sets up a baseline: it goes with --baseline NAME (a team file has its own)")
