"""Training in one call."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from icmape.errors import UserError
from icmape.learning.config import DEFAULT_ALGORITHM, Config, override, with_algorithm
from icmape.learning.run import Callback, Run, train_run
from icmape.presets import preset
from icmape.problems import Centralized, Problem
from icmape.teams import Team
from icmape.teams.from_run import best_team, save_teams


def train(
    problem: str | Problem,
    *,
    algorithm: str | None = None,
    centralized: bool = False,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    callback: Callback | None = None,
    progress: bool = True,
    **settings: Any,
) -> Team:
    """Train a team for a preset's name or a problem of your own, and return the best of its seeds.

    `settings` are those of `icmape.Config`, nested ones as mappings: `delta=0.05, network={"width": 32}`. With `out`,
    metrics, checkpoints and every seed's team are written to that folder; `callback` is told about every chunk.
    `centralized` trains one agent that sees what all agents see and moves all of them.
    """
    if isinstance(problem, type):
        raise UserError(f"given the class {problem.__name__}; pass an instance: {problem.__name__}()")
    if isinstance(problem, Problem):
        config = with_algorithm(Config(), algorithm or DEFAULT_ALGORITHM)
    else:
        chosen = preset(problem)
        algorithm = algorithm or (DEFAULT_ALGORITHM if centralized else None)  # one agent needs no guide
        config, problem = chosen.config(algorithm), chosen.build()
    config, problem = override(config, settings), Centralized(problem) if centralized else problem
    folder = None if out is None else Path(out)
    run = with_display(
        lambda tell: train_run(problem, config, folder, overwrite=overwrite, callback=tell),
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
