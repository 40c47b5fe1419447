"""`icmape check-prior`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from icmape.cli.teams import ProblemOptions, load_changed, team_paths
from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.play.team import Team
from icmape.plot.terminal import check_file, check_folder, progress, say, write_json

UNLIKE = 1
WORLDS = 2000


@dataclass(frozen=True, kw_only=True)
class CheckPriorOptions(ProblemOptions):
    """Do recorded sessions look like the worlds that the team was trained on?

    The team plays sessions in fresh worlds of its prior, and statistics of the recorded ones are ranked among theirs.
    The exit code is 1 if p is below the level. With --set, the sessions are compared with a changed prior.
    """

    team: tyro.conf.Positional[str]
    """A team file, or the name of a pretrained team."""
    sessions: tyro.conf.Positional[tuple[str, ...]]
    """Folders of sessions (`icmape session`), or folders above them."""
    worlds: int | None = None
    """Number of simulated sessions; by default 2,000, or 500 for each recorded one."""
    level: float = 0.01
    """Probability of a warning where the worlds are those of the prior."""
    seed: int = 0
    """Seed of the simulated worlds."""
    prepare: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Instead: write simulated sessions to the folder, so that sessions of this team in it, or directly below it, warn
    when the team answers, also without JAX."""
    out: Path | None = None
    """A page (.html), a picture (.svg) or the numbers (.json)."""


def check_prior_command(arguments: list[str]) -> int:
    """Compare sessions with the prior; the exit code is 1 if they do not fit."""
    args = tyro.cli(CheckPriorOptions, prog="icmape check-prior", args=arguments)
    from icmape.evaluation.prior_check.check import compare, worlds_for
    from icmape.evaluation.prior_check.recorded import read_sessions
    from icmape.plot.prior_chart import check_kind, write_picture
    from icmape.problem import check_worlds

    if not args.sessions:
        raise UserError("give the folders of recorded sessions behind the team")
    if len(paths := team_paths(args.team)) > 1:
        raise UserError(f"{args.team} holds {len(paths)} teams: name one of them, such as {paths[0]}")
    check_file(args.out)
    check_kind(args.out)
    use_compilation_cache()
    team = load_changed(paths[0], args.problem_class, args.changes)
    check_worlds(team.problem)
    if args.prepare:
        return _prepare(team, args)
    sessions = read_sessions(team, list(args.sessions))
    with progress("simulating", args.worlds or worlds_for(len(sessions))) as tick:
        check = compare(team, sessions, worlds=args.worlds, level=args.level, seed=args.seed, tick=tick)
    say(str(check))
    if args.out is not None and args.out.suffix == ".json":
        write_json(args.out, check.to_dict())
    elif args.out is not None:
        say(f"written to {write_picture(check, args.out)}")
    return 0 if check.fits else UNLIKE


def _prepare(team: Team, args: CheckPriorOptions) -> int:
    """Write the statistics of simulated sessions to each folder."""
    from icmape.evaluation.prior_check.prepare import prepare

    for folder in args.sessions:
        check_folder(Path(folder))
    worlds = args.worlds or WORLDS
    with progress("simulating", worlds) as tick:
        paths = prepare(team, args.sessions, worlds=worlds, level=args.level, seed=args.seed, tick=tick)
    for path in paths:
        say(f"written to {path}")
    return 0
