"""`icmape evaluate`."""

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tyro
from rich.markup import escape

from icmape.cli.teams import changes_of, check_choice, chosen_baseline, chosen_teams
from icmape.errors import UserError
from icmape.io import write_atomically
from icmape.play.team import Team
from icmape.plot.terminal import out, progress, say
from icmape.problem.spec import describe


def evaluate_command(words: list[str]) -> int:
    """Judge teams on fresh worlds."""

    def evaluate(
        team: tyro.conf.Positional[str | None] = None,
        episodes: int = 10_000,
        seed: int = 0,
        out: Path | None = None,
        problem: str | None = None,
        baseline: str | None = None,
        rounds: int | None = None,
        level: float | None = None,
        delta: float | None = None,
        exact: int | None = None,
        data: tuple[str, ...] = (),
        set: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """Judge a team on fresh worlds with greedy actors; with --baseline, a rival that does not learn.

        Args:
            team: A team file, a run's folder (all its teams) or a pretrained team's name; with --baseline a preset.
            episodes: Number of worlds.
            seed: Seed of the worlds; they are never those of training, whatever the seed.
            out: Also write the numbers to this JSON file.
            problem: module:Class of a problem that is not part of icmape: the one a team was trained on, or with
                --baseline the one to play instead of a preset.
            baseline: Name of a baseline (`icmape list` names them), which is played on the preset's problem; or
                module:Class of your own, which is called with the problem and δ and gives a team.
            rounds: Of the baseline: stop after so many rounds of data.
            level: Of the baseline: stop once its posterior is this sure; for schedules left early, once no more than
                1 - level is expected of another round.
            delta: Of the baseline: δ, so that its target is 1-δ; 0.1 unless told.
            exact: Episodes that the exact posterior judges too: the first so many. Unless told all, or 1,000 where that
                takes long.
            data: Files or folders of measurements, where the problem's worlds come from such.
            set: NAME=VALUE ...: arguments of the problem to change, such as years=2019, so that a team is judged in
                worlds that it was not trained on.
        """
        return dict(locals())

    args = tyro.cli(evaluate, prog="icmape evaluate", args=words)
    _check(args)
    results = {}
    for name, title, team in _teams(args):
        with progress("playing", args["episodes"]) as tick:
            result = team.evaluate(episodes=args["episodes"], seed=args["seed"], tick=tick, exact=args["exact"])
        about = f" ({team.problem.remark})" if team.problem.remark else ""
        out.print(f"[bold]{escape(title + about)}[/]", soft_wrap=True, highlight=False)
        say(str(result))
        results[name] = {
            "team": name,
            "problem": describe(team.problem, local=False),
            **result.to_dict(),
            "provenance": json.loads(team.card),
        }
    if args["out"] is not None:
        content = next(iter(results.values())) if len(results) == 1 else {"teams": results, **_over_teams(results)}
        write_atomically(args["out"], json.dumps(content, indent=2).encode() + b"\n")
        say(f"written to {args['out']}")
    return 0


def _check(args: dict[str, Any]) -> None:
    """Refuse what does not go together, before anything is loaded."""
    if args["episodes"] < 1:
        raise UserError(f"an evaluation needs at least one episode; given {args['episodes']}")
    if args["out"] is not None and args["out"].is_dir():
        raise UserError(f"--out {args['out']} is a folder; expected the name of a JSON file")
    check_choice(args)


def _teams(args: dict[str, Any]) -> Iterator[tuple[str, str, Team]]:
    """Name, title and team of all that is to be judged."""
    if args["baseline"]:
        return iter([chosen_baseline(args)])
    return chosen_teams(args["team"], args["problem"], changes_of(args["data"], args["set"]))


def _over_teams(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation over teams of what is a number for each of them."""
    names = ("accuracy", "tau", "rounds", "readings", "forced", "ece", "no_data_accuracy")
    columns = {name: [result[name] for result in results.values()] for name in names}
    return {
        "mean": {name: statistics.fmean(values) for name, values in columns.items()},
        "spread": {name: statistics.stdev(values) for name, values in columns.items()},
    }
