"""Training in one call."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from icmape.baselines.by_name import find_policies
from icmape.errors import UserError
from icmape.evaluation.methods import Comparison
from icmape.learning.config import DEFAULT_ALGORITHM, Config, Guide, with_algorithm
from icmape.learning.presets import preset
from icmape.learning.run import Callback, Run, train_run
from icmape.learning.run_teams import best_team, save_teams
from icmape.play.policy import LocalPolicy
from icmape.play.team import Team
from icmape.problem.centralized import Centralized
from icmape.problem.contract import Problem
from icmape.settings import override


def train(
    problem: str | Problem,
    *,
    algorithm: str | None = None,
    centralized: bool = False,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    callback: Callback | None = None,
    progress: bool = True,
    guide: LocalPolicy | str | Mapping[str, Any] | Guide | None = None,
    **settings: Any,
) -> Team:
    """Train a team for a preset's name or a problem of your own, and return the best of its seeds.

    `settings` are those of `icmape.Config`, nested ones as mappings: `delta=0.05, network={"width": 32}`. With `out`,
    metrics, checkpoints and every seed's team are written to that folder; `callback` is told about every chunk.
    `centralized` trains one agent that sees what all agents see and moves all of them. `guide` is a policy to
    learn from at first: one of your own, a name (a reference, a team file, module:Class), or the settings of a guide.
    """
    own = guide if isinstance(guide, LocalPolicy) else None
    algorithm = algorithm or ("guided" if isinstance(guide, LocalPolicy | str) else None)
    if isinstance(problem, type):
        raise UserError(f"given the class {problem.__name__}; pass an instance: {problem.__name__}()")
    if isinstance(problem, Problem):
        config = with_algorithm(Config(), algorithm or DEFAULT_ALGORITHM)
    else:
        chosen = preset(problem)
        algorithm = algorithm or (DEFAULT_ALGORITHM if centralized else None)  # one agent needs no guide
        config, problem = chosen.config(algorithm), chosen.build()
    if guide is not None:
        settings["guide"] = _guide_settings(guide, config)
    config, problem = override(config, settings), Centralized(problem) if centralized else problem
    folder = None if out is None else Path(out)
    policies = find_policies(problem, config, own)
    run = with_display(
        lambda tell: train_run(problem, config, folder, overwrite=overwrite, callback=tell, policies=policies),
        config,
        callback,
        progress,
    )
    if folder is not None:
        save_teams(run, folder)
    return best_team(run)


def _guide_settings(guide: LocalPolicy | str | Mapping[str, Any] | Guide, config: Config) -> Mapping[str, Any] | Guide:
    """The settings of a guide; for a policy that is given as it is, its class stands for it in the run's files."""
    if isinstance(guide, Mapping | Guide):
        return guide
    name = guide if isinstance(guide, str) else f"{type(guide).__module__}:{type(guide).__qualname__}"
    return {"policy": name, "share": config.guide.share or 1.0}


def compare(
    sources: Sequence[str | os.PathLike[str] | Team] | Mapping[str, str | os.PathLike[str] | Team],
    *,
    references: Sequence[str | Team] = (),
    episodes: int = 10_000,
    seed: int = 0,
    reference_episodes: int = 2_000,
    out: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Methods side by side on the same fresh worlds: teams, run folders, team files, shipped teams, results as JSON.

    A mapping gives them names. `references` are names (`icmape list`), `module:Class` or teams, each drawn as a line;
    by default all that fit the problem, and `["none"]` for none. With `out`, table, numbers and picture go there.
    """
    from icmape.evaluation.comparison import compare as play_all
    from icmape.evaluation.comparison import plan

    names = list(sources) if isinstance(sources, Mapping) else []
    given = list(sources.values() if isinstance(sources, Mapping) else sources)
    asked = [one if isinstance(one, Team) else os.fspath(one) for one in given]
    folder = None if out is None else Path(out)
    planned = plan(asked, episodes, seed, names, references, reference_episodes)
    found = play_all(planned, folder=folder)
    if folder is not None:
        from icmape.plot.comparison_table import write_comparison

        write_comparison(found, folder)
    return found


def with_display(
    work: Callable[[Callback | None], Run], config: Config, callback: Callback | None, progress: bool
) -> Run:
    """Run with the live display (if wanted) and the caller's callback both told."""
    if not progress:
        return work(callback)
    from icmape.plot.progress import display

    with display(config) as show:

        def tell(report: Any) -> None:
            show(report)
            if callback:
                callback(report)

        return work(tell)
