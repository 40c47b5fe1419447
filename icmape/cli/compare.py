"""`icmape compare`."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from icmape.cli.teams import ProblemOptions, typed_changes
from icmape.evaluation.comparison import compare, plan
from icmape.plot.comparison_table import render, write_comparison
from icmape.plot.terminal import SafeConsole, check_folder, out, progress, say

PIPE_WIDTH = 160  # columns of output to a file or a pipe


@dataclass(frozen=True, kw_only=True)
class CompareOptions(ProblemOptions):
    """Compare methods: one table, and a figure of accuracy against τ with baselines as lines.

    Every team is played on the same fresh worlds. Results of a run's teams are stored in the run's folder, so the next
    comparison does not play them again.
    """

    sources: tyro.conf.Positional[tuple[str, ...]] = ()
    """Run folders (all seeds are one method), team files, pretrained teams, JSON files with results of evaluations."""
    episodes: int = 10_000
    """Worlds per team."""
    seed: int = 0
    """Seed of the worlds."""
    out: Path = Path("runs/comparison")
    """Folder for comparison.png, comparison.json and comparison.md."""
    names: tuple[str, ...] = ()
    """Labels of the methods, in their order; by default the names of their folders or files."""
    baselines: tuple[str, ...] = ()
    """Baselines to draw (`icmape list`), or module:Class of your own; `none`; by default all that need no training."""
    baseline_episodes: int = 2_000
    """Worlds for each point of a baseline's curve."""


def compare_command(arguments: list[str]) -> int:
    """Compare methods."""
    args = tyro.cli(CompareOptions, prog="icmape compare", args=arguments)
    check_folder(args.out)
    kind = args.problem_class
    changes = typed_changes(args.sources, kind, args.changes)
    sizes = (args.episodes, args.seed, args.names, args.baselines, args.baseline_episodes)
    planned = plan(args.sources, *sizes, kind, changes)
    with progress("playing", planned.work) as tick:
        comparison = compare(planned, folder=args.out, tick=tick)
    picture, numbers, page = write_comparison(comparison, args.out)
    console = out if out.is_terminal else SafeConsole(width=PIPE_WIDTH)
    console.print(render(comparison, console.width))
    say(f"picture: {picture}   numbers: {numbers}   page: {page}")
    return 0
