"""`icmape app`."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from icmape.app.contents import contents
from icmape.app.page import write_app
from icmape.cli.teams import ProblemOptions, load_changed, team_paths
from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.play.episodes import check_seed
from icmape.play.team_files import pretrained
from icmape.plot.terminal import out, say
from icmape.problem import check_worlds

TABS = {"bandit-quick": "bandit", "signal": "source", "nitrate-synthetic": "nitrate"}
SHIPPED = {name: tab for name, tab in TABS.items() if name in pretrained()}
"""Teams of an app for which none are named, and their tabs. Their worlds need no measurements."""
MOST_WORLDS = 1000


@dataclass(frozen=True, kw_only=True)
class AppOptions(ProblemOptions):
    """One HTML file in which people play beside the agents of a team, and change readings to see what follows.

    It needs no server and no network. The agents are the team's, with large matrices rounded to 8 bits.
    """

    teams: tyro.conf.Positional[tuple[str, ...]] = ()
    """Team files and names of pretrained teams, one tab each; by default bandit-quick, signal and nitrate-synthetic."""
    out: Path
    """The file: a name that ends with .html."""
    names: tuple[str, ...] = ()
    """Names on the tabs, in their order."""
    worlds: int = 40
    """Worlds of each team. People play them in their order."""
    seed: int = 0
    """Seed of the worlds: world n is that of `icmape play --world n --seed SEED`."""


def app_command(arguments: list[str]) -> int:
    """Write an app."""
    args = tyro.cli(AppOptions, prog="icmape app", args=arguments)
    sources = args.teams or tuple(SHIPPED)
    names = _names(args, sources)
    _check(args, names)
    use_compilation_cache()
    made = []
    for source, name in zip(sources, names, strict=True):
        team = load_changed(source, args.problem_class, args.changes)
        check_worlds(team.problem)
        with out.status(f"{name}: {args.worlds} worlds"):
            made.append(contents(name, team, args.worlds, args.seed))
        say(f"{name}: {args.worlds} worlds, {len(made[-1].data) / 1000:,.0f} kB")
    path = write_app(args.out, made)
    say(f"{path} ({path.stat().st_size / 1000:,.0f} kB): open it in any browser, on a phone too")
    return 0


def _names(args: AppOptions, sources: tuple[str, ...]) -> tuple[str, ...]:
    """Words on the tabs."""
    if args.names and len(args.names) != len(sources):
        raise UserError(f"--names needs a name for each of the {len(sources)} teams")
    return args.names or tuple(SHIPPED.get(source, Path(source).stem) for source in sources)


def _check(args: AppOptions, names: tuple[str, ...]) -> None:
    """Refuse invalid options before anything is drawn."""
    if args.out.suffix != ".html":
        raise UserError(f"--out is the file: a name that ends with .html; given {args.out}")
    if len(set(names)) < len(names):
        raise UserError(f"each tab needs a name of its own; given {', '.join(names)}: choose them with --names")
    if not 1 <= args.worlds <= MOST_WORLDS:
        raise UserError(f"--worlds must lie in 1..{MOST_WORLDS}; given {args.worlds}")
    check_seed(args.seed)
    for source in args.teams:
        if len(paths := team_paths(source)) > 1:
            raise UserError(f"{source} holds {len(paths)} teams: name one of them, such as {paths[0]}")
