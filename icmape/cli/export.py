"""`icmape export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from icmape.cli.teams import ProblemOptions, load_changed, team_paths
from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.export import export
from icmape.export.formats import EPISODES
from icmape.plot.terminal import say


@dataclass(frozen=True, kw_only=True)
class ExportOptions(ProblemOptions):
    """A team for devices without JAX: checked against JAX on episodes, then written."""

    team: tyro.conf.Positional[str]
    """A team file or the name of a pretrained team."""
    to: Literal["light", "onnx", "js"]
    """light: a team file for `icmape_agent`, which needs NumPy only; onnx: ONNX graphs; js: JSON and JavaScript."""
    out: Path
    """File (light) or folder (onnx, js) to write."""
    episodes: int = EPISODES
    """Number of episodes on which scores and choices are compared with those of JAX."""
    overwrite: bool = False
    """Replace what is there."""


def export_command(arguments: list[str]) -> int:
    """Export a team."""
    args = tyro.cli(ExportOptions, prog="icmape export", args=arguments)
    if args.episodes < 1:
        raise UserError(f"--episodes must be at least 1; given {args.episodes}")
    paths = team_paths(args.team)
    if len(paths) > 1:
        raise UserError(f"{args.team} holds {len(paths)} teams: name one of them, such as {paths[0]}")
    if args.out.exists() and not args.overwrite and (args.out.is_file() or any(args.out.iterdir())):
        raise UserError(f"{args.out} exists: choose another --out, or replace it with --overwrite")
    use_compilation_cache()
    team = load_changed(paths[0], args.problem_class, args.changes)
    files, found = export(team, args.to, args.out, episodes=args.episodes)
    for path in files:
        say(f"{path} ({path.stat().st_size / 1000:,.0f} kB)")
    if found is None:
        say("not compared with JAX: Node, which runs the JavaScript, is not installed")
    else:
        say(
            f"compared with JAX in {found.episodes} episodes: scores differ by at most {found.largest_difference:.2g} "
            f"of the largest, {found.differing_choices} of {found.decisions} choices and {found.differing_answers} "
            "answers differ"
        )
    return 0
