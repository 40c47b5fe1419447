"""`icmape evaluate`."""

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.text import Text

from icmape.cli.options import RATES
from icmape.cli.teams import BaselineOptions, check_choice, chosen_baseline, chosen_teams
from icmape.errors import UserError
from icmape.play.team import Team
from icmape.plot.progress import phases_shown
from icmape.plot.terminal import check_file, out, progress, say, write_json
from icmape.problem.spec import describe


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(BaselineOptions):
    """Evaluate a team on fresh worlds with greedy actors; with --baseline, a method that does not learn."""

    team: tyro.conf.Positional[str | None] = None
    """A team file, a run's folder (all its teams) or a pretrained team's name; with --baseline a preset."""
    episodes: int = 10_000
    """Number of worlds."""
    seed: int = 0
    """Seed of the worlds; they are never those of training, whatever the seed."""
    out: Path | None = None
    """Also write the numbers to this JSON file."""
    exact: int | None = None
    """Number of episodes that are also evaluated with the exact posterior; by default all, or 1,000 if that is slow."""
    lost: Annotated[float | None, tyro.conf.arg(help=RATES["lost"])] = None
    silent: Annotated[float | None, tyro.conf.arg(help=RATES["silent"])] = None
    late: Annotated[float | None, tyro.conf.arg(help=RATES["late"])] = None

    @property
    def rates(self) -> dict[str, float]:
        """The rates that are given; the others are 0 then. Without any, those of the team's problem hold."""
        return {name: rate for name in RATES if (rate := getattr(self, name)) is not None}


def evaluate_command(arguments: list[str]) -> int:
    """Evaluate teams on fresh worlds."""
    args = tyro.cli(EvaluateOptions, prog="icmape evaluate", args=arguments)
    if args.episodes < 1:
        raise UserError(f"an evaluation needs at least one episode; given {args.episodes}")
    check_file(args.out)
    source = check_choice(args)
    results = {}
    for name, title, team in [_baseline(args)] if args.baseline else chosen_teams(source, args):
        team = team.under(**args.rates) if args.rates and not args.baseline else team
        with progress("playing (compiled first)", args.episodes) as tick:
            result = team.evaluate(episodes=args.episodes, seed=args.seed, tick=tick, exact=args.exact)
        about = f" ({team.problem.remark})" if team.problem.remark else ""
        out.print(Text(title + about, style="bold"), soft_wrap=True, highlight=False)
        say(str(result))
        described = {"team": name, "problem": describe(team.problem, local=False)}
        results[name] = {**described, **result.to_dict(), "provenance": json.loads(team.card)}
    if args.out is not None:
        single = next(iter(results.values())) if len(results) == 1 else None
        write_json(args.out, single or {"teams": results, **_over_teams(results)})
    return 0


def _baseline(args: EvaluateOptions) -> tuple[str, str, Team]:
    """A baseline, whose schedule may have to be learned, or whose level to be tuned."""
    with phases_shown(f"preparing {args.baseline} for {args.team or args.problem}: seconds to minutes"):
        return chosen_baseline(args, args.rates)


def _over_teams(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean and standard deviation over teams."""
    names = ("accuracy", "tau", "rounds", "readings", "forced", "ece", "no_data_accuracy")
    columns = {name: [result[name] for result in results.values()] for name in names}
    return {
        "mean": {name: statistics.fmean(values) for name, values in columns.items()},
        "spread": {name: statistics.stdev(values) for name, values in columns.items()},
    }
