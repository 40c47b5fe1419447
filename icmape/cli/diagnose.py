"""`icmape diagnose`."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from icmape.cli.teams import ProblemOptions, load_changed
from icmape.plot.terminal import check_file, out, say, write_json


@dataclass(frozen=True, kw_only=True)
class DiagnoseOptions(ProblemOptions):
    """Replace a team's inference, stopping rule and sampling by the best known ones, at the same accuracy."""

    team: tyro.conf.Positional[str]
    """A team file, or the name of a pretrained team."""
    episodes: int = 10_000
    """Worlds for each row."""
    seed: int = 0
    """Seed of the worlds."""
    out: Path | None = None
    """Also write the numbers to this JSON file."""


def diagnose_command(arguments: list[str]) -> int:
    """Find out which part of a team limits it."""
    args = tyro.cli(DiagnoseOptions, prog="icmape diagnose", args=arguments)
    check_file(args.out)
    from icmape.evaluation.diagnosis import diagnose

    team = load_changed(args.team, args.problem_class, args.changes)
    with out.status("playing") as status:
        show = lambda label: status.update(f"playing: {label}")  # noqa: E731
        diagnosis = diagnose(team, episodes=args.episodes, seed=args.seed, tell=show)
    say(str(diagnosis))
    if args.out is not None:
        write_json(args.out, diagnosis.to_dict())
    return 0
