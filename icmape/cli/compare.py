"""`icmape compare`."""

from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from icmape.cli.teams import changes_of, typed_changes
from icmape.errors import UserError
from icmape.evaluation.comparison import compare, plan
from icmape.evaluation.methods import Comparison
from icmape.plot.comparison_table import render, write_comparison
from icmape.plot.terminal import out, progress, say
from icmape.problem import Problem
from icmape.problem.spec import load_class

PIPE_WIDTH = 160  # of what is printed to a file or a pipe, which have no edge


def compare_command(arguments: list[str]) -> int:
    """Methods side by side."""

    def options(
        sources: tyro.conf.Positional[tuple[str, ...]] = (),
        episodes: int = 10_000,
        seed: int = 0,
        out: Path = Path("runs/comparison"),
        names: tuple[str, ...] = (),
        baselines: tuple[str, ...] = (),
        baseline_episodes: int = 2_000,
        problem: str | None = None,
        data: tuple[str, ...] = (),
        set: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """One table of methods, and one picture: accuracy against τ, with baselines as lines.

        Every team is played on the same fresh worlds. Results of a run's teams are kept in the run's folder, so that
        the next comparison need not play them again.

        Args:
            sources: Run folders (all seeds of a run are one method), team files, pretrained teams by name, and JSON
                files that `icmape evaluate --out` wrote or that hold results of others (taken as they are).
            episodes: Worlds that each team is played on.
            seed: Seed of the worlds.
            out: Folder for comparison.png, comparison.json and comparison.md.
            names: What to call the methods, in their order; by default the names of their folders or files.
            baselines: Baselines to draw (`icmape list` names them), or module:Class of your own, which is called with
                the problem and δ and gives a team; by default all that fit the problem and need no training; `none`.
            baseline_episodes: Worlds for each point of a baseline's curve.
            problem: module:Class of a problem that is not part of icmape, if the teams were trained on one.
            data: Files or folders of measurements, where the problem's worlds come from such.
            set: NAME=VALUE ...: arguments of the problem to change, such as years=2019.
        """
        return dict(locals())

    args = tyro.cli(options, prog="icmape compare", args=arguments)
    return _compare(**args)


def _compare(
    sources: tuple[str, ...],
    episodes: int,
    seed: int,
    out: Path,
    names: tuple[str, ...],
    baselines: tuple[str, ...],
    baseline_episodes: int,
    problem: str | None,
    data: tuple[str, ...],
    set: tuple[str, ...],
) -> int:
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file; expected a folder")
    problem_class: type[Problem] | None = None if problem is None else load_class(problem)
    changes = typed_changes(sources, problem_class, changes_of(data, set))
    planned = plan(sources, episodes, seed, names, baselines, baseline_episodes, problem_class, changes)
    with progress("playing", planned.work) as tick:
        comparison = compare(planned, folder=out, tick=tick)
    return _show(comparison, write_comparison(comparison, out))


def _show(comparison: Comparison, paths: list[Path]) -> int:
    console = out if out.is_terminal else Console(width=PIPE_WIDTH)
    console.print(render(comparison, console.width))
    say(f"picture: {paths[0]}   numbers: {paths[1]}   page: {paths[2]}")
    return 0
