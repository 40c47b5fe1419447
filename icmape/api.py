"""Training in one call."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from icmape.errors import UserError
from icmape.learning.config import Config, override, with_algorithm
from icmape.learning.run import Callback, Run, train_run
from icmape.presets import preset, problem_name
from icmape.problems import Problem
from icmape.teams import Team
from icmape.teams.from_run import best_team, save_teams


def train(
    problem: str | Problem,
    *,
    algorithm: str = "td3",
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    callback: Callback | None = None,
    progress: bool = True,
    **settings: Any,
) -> Team:
    """Train a team for a preset's name or a problem of your own, and return the best of its seeds.

    `settings` are those of `icmape.Config`, nested ones as mappings: `delta=0.05, network={"width": 32}`. With `out`,
    metrics, checkpoints and every seed's team are written to that folder; `callback` is told about every chunk.
    """
    if isinstance(problem, type):
        raise UserError(f"given the class {problem.__name__}; pass an instance: {problem.__name__}()")
    config = Config() if isinstance(problem, Problem) else preset(problem).config()
    config = override(with_algorithm(config, algorithm), settings)
    problem = problem if isinstance(problem, Problem) else preset(problem).build()
    folder = None if out is None else Path(out)
    run = with_display(
        lambda tell: train_run(
            problem, config, folder, problem_kind=problem_name(type(problem)), overwrite=overwrite, callback=tell
        ),
        config,
        callback,
        progress,
    )
    if folder is not None:
        save_teams(run, folder)
    return best_team(run)


def with_display(
    work: Callable[[Callback | None], Run], config: Config, callback: Callback | None, progress: bool
) -> Run:
    """Run with the live display (if wanted) and the caller's callback both told."""
    if not progress:
        return work(callback)
    from icmape.reporting.progress import display

    with display(config) as show:

        def tell(report: Any) -> None:
            show(report)
            if callback:
                callback(report)

        return work(tell)
