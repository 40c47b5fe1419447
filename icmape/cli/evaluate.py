"""`icmape evaluate`."""

import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tyro
from rich.markup import escape

from icmape.cli.terminal import out, progress, say
from icmape.descriptions import describe
from icmape.errors import UserError
from icmape.learning.files import write_atomically
from icmape.presets import PRESETS, preset
from icmape.problems import Problem, load_class
from icmape.teams import Team, load, shipped


def evaluate_command(words: list[str]) -> int:
    """Judge teams on fresh worlds."""

    def evaluate(
        team: tyro.conf.Positional[str | None] = None,
        episodes: int = 10_000,
        seed: int = 0,
        out: Path | None = None,
        problem: str | None = None,
        reference: str | None = None,
        rounds: int | None = None,
        level: float | None = None,
        delta: float | None = None,
        exact: int | None = None,
    ) -> dict[str, Any]:
        """Judge a team on fresh worlds with greedy actors; with --reference, a rival that does not learn.

        Args:
            team: A team file, a run's folder (all its teams) or the name of a shipped team; with --reference a preset.
            episodes: Number of worlds.
            seed: Seed of the worlds; they are never those of training, whatever the seed.
            out: Also write the numbers to this JSON file.
            problem: module:Class of a problem that is not part of icmape: the one a team was trained on, or with
                --reference the one to play instead of a preset.
            reference: Name of a reference (`icmape list` names them), which is played on the preset's problem.
            rounds: Of the reference: stop after so many rounds of data.
            level: Of the reference: stop once its posterior is this sure; for schedules left early, once no more than
                1 - level is expected of another round.
            delta: Of the reference: δ, so that its target is 1-δ; 0.1 unless told.
            exact: Episodes that the exact posterior judges too: the first so many. Unless told all, or 1,000 where that
                takes long.
        """
        return dict(locals())

    given = tyro.cli(evaluate, prog="icmape evaluate", args=words)
    _check(given)
    teams = _reference(given) if given["reference"] else _teams(given["team"], given["problem"])
    results = {}
    for name, title, team in teams:
        with progress("playing", given["episodes"]) as tick:
            result = team.evaluate(episodes=given["episodes"], seed=given["seed"], tick=tick, exact=given["exact"])
        out.print(f"[bold]{escape(title)}[/]", soft_wrap=True, highlight=False)
        say(str(result))
        results[name] = {
            "team": name,
            "problem": describe(team.problem),
            **result.to_dict(),
            "provenance": json.loads(team.card),
        }
    if given["out"] is not None:
        content = next(iter(results.values())) if len(results) == 1 else {"teams": results, **_over_teams(results)}
        write_atomically(given["out"], json.dumps(content, indent=2).encode() + b"\n")
        say(f"written to {given['out']}")
    return 0


def _check(given: dict[str, Any]) -> None:
    """Refuse what does not go together, before anything is loaded."""
    if given["episodes"] < 1:
        raise UserError(f"an evaluation needs at least one episode; given {given['episodes']}")
    if given["out"] is not None and given["out"].is_dir():
        raise UserError(f"--out {given['out']} is a folder; expected the name of a JSON file")
    if given["reference"]:
        if (given["team"] is None) == (given["problem"] is None):
            raise UserError(
                f"--reference {given['reference']} needs a problem: give a PRESET ({', '.join(PRESETS)}) or "
                "--problem module:Class, one of them"
            )
        return
    if given["team"] is None:
        raise UserError("give a team file, a run's folder or a shipped team's name; or a PRESET and --reference NAME")
    for name in ("rounds", "level", "delta"):
        if given[name] is not None:
            raise UserError(f"--{name} sets up a reference: it goes with --reference NAME (a team file has its own)")


def _teams(name: str, problem_path: str | None) -> Iterator[tuple[str, str, Team]]:
    """Name, title and team of all that a name stands for."""
    problem = None if problem_path is None else load_class(problem_path)
    for path in _team_paths(name):
        yield Path(path).stem, path, load(path, problem)


def _reference(given: dict[str, Any]) -> Iterator[tuple[str, str, Team]]:
    """The same for a reference: it is a team like any other."""
    from icmape.references.registry import reference_team

    problem = preset(given["team"]).build() if given["team"] else _build(given["problem"])
    settings = {name: given[name] for name in ("rounds", "level", "delta") if given[name] is not None}
    team = reference_team(given["reference"], problem, **settings)
    title = " ".join([given["reference"], *(f"{name} {value:g}" for name, value in settings.items())])
    yield title, f"{title} on {given['team'] or given['problem']}", team


def _build(path: str) -> Problem:
    """The problem that module:Class makes with its defaults."""
    found: Callable[[], Problem] = load_class(path)
    try:
        return found()
    except (TypeError, ValueError) as error:
        raise UserError(f"--problem {path} cannot be built without arguments: {error}") from error


def _team_paths(name: str) -> list[str]:
    """The team files that a name stands for: all of a run's folder, or itself."""
    folder = Path(name)
    if not folder.is_dir():
        if name in PRESETS and name not in shipped() and not folder.exists():
            raise UserError(
                f"no trained team ships for {name} yet: make one with `icmape train {name}`, or judge a reference "
                f"with `icmape evaluate {name} --reference NAME`"
            )
        return [name]
    found = sorted(map(str, folder.glob("team-*.safetensors")))
    if not found:
        raise UserError(
            f"{folder} holds no teams (team-SEED.safetensors): is its run finished? `icmape resume {folder}`"
        )
    return found


def _over_teams(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation over teams of what is a number for each of them."""
    names = ("accuracy", "tau", "rounds", "readings", "forced", "ece", "no_data_accuracy")
    columns = {name: [result[name] for result in results.values()] for name in names}
    return {
        "mean": {name: statistics.fmean(values) for name, values in columns.items()},
        "spread": {name: statistics.stdev(values) for name, values in columns.items()},
    }
