"""Training and comparing in one call."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from icmape.baselines.by_name import find_policies
from icmape.errors import UserError
from icmape.evaluation.methods import Comparison
from icmape.learning.config import DEFAULT_ALGORITHM, Config, Teacher, with_algorithm
from icmape.learning.phases import SETTINGS, begin
from icmape.learning.presets import preset
from icmape.learning.run import Callback, Run, check_run, on_host, train_run
from icmape.learning.run_teams import best_team, save_teams
from icmape.locks import only_writer
from icmape.play.policy import LocalPolicy
from icmape.play.processes import is_first
from icmape.play.team import Team
from icmape.problem import Centralized, Problem, Unreliable
from icmape.settings import override


def train(
    problem: str | Problem,
    *,
    algorithm: str | None = None,
    centralized: bool = False,
    lost: float = 0.0,
    silent: float = 0.0,
    late: float = 0.0,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    callback: Callback | None = None,
    progress: bool = True,
    teacher: LocalPolicy | str | Mapping[str, Any] | Teacher | None = None,
    devices: int | None = None,
    **settings: Any,
) -> Team:
    """Train a team for a preset or a problem object, and return the team of the best seed.

    `settings` are those of `icmape.Config`, nested ones as mappings: `delta=0.05, network={"hidden_size": 32}`. With
    `out`, metrics, checkpoints and the team of every seed are written to that folder. `callback` is called after each
    chunk. `centralized` trains one agent that observes and controls all agents. `lost`, `silent` and `late` are rates
    of failures during training (`icmape.Unreliable`). `teacher` is a policy to imitate at first: a policy object, a
    name (a baseline, a team file, module:Class), or the settings of a teacher. The run is split over `devices`
    (default: all that JAX finds). Of several processes (`jax.distributed`) all must call this; the first one writes.
    """
    teacher_policy = teacher if isinstance(teacher, LocalPolicy) else None
    algorithm = algorithm or ("guided" if isinstance(teacher, LocalPolicy | str) else None)
    if isinstance(problem, type):
        raise UserError(f"given the class {problem.__name__}; pass an instance: {problem.__name__}()")
    if isinstance(problem, Problem):
        config = with_algorithm(Config(), algorithm or DEFAULT_ALGORITHM)
    else:
        chosen = preset(problem)
        algorithm = algorithm or (DEFAULT_ALGORITHM if centralized else None)  # one agent needs no teacher
        config, problem = chosen.config(algorithm), chosen.build()
    if teacher is not None:
        settings["teacher"] = _teacher_settings(teacher, config)
    problem = Unreliable(problem, lost, silent, late) if lost or silent or late else problem
    config, problem = override(config, settings), Centralized(problem) if centralized else problem
    folder = None if out is None or not is_first() else Path(out)

    def work(tell: Callback | None) -> Run:
        begin("settings", "checking the problem and the settings", SETTINGS)
        check_run(problem, config, folder, overwrite=overwrite)  # before policies are looked up, which may take minutes
        policies = find_policies(problem, config, teacher_policy, named=(config.teacher.policy,))
        if folder is not None:
            held.enter_context(only_writer(folder))
        options: dict[str, Any] = {"overwrite": overwrite, "policies": policies, "devices": devices}
        return train_run(problem, config, folder, callback=tell, **options)

    with ExitStack() as held:
        run = on_host(with_display(work, config, callback, progress and is_first()))
        if folder is not None:
            save_teams(run, folder)
    return best_team(run)


def _teacher_settings(
    teacher: LocalPolicy | str | Mapping[str, Any] | Teacher, config: Config
) -> Mapping[str, Any] | Teacher:
    """The settings of a teacher. A policy object is recorded in the files of the run by the name of its class."""
    if isinstance(teacher, Mapping | Teacher):
        return teacher
    name = teacher if isinstance(teacher, str) else f"{type(teacher).__module__}:{type(teacher).__qualname__}"
    return {"policy": name, "weight": config.teacher.weight or 1.0}


def compare(
    sources: Sequence[str | os.PathLike[str] | Team] | Mapping[str, str | os.PathLike[str] | Team],
    *,
    baselines: Sequence[str | Team] = (),
    episodes: int = 10_000,
    seed: int = 0,
    baseline_episodes: int = 2_000,
    out: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Compare methods on the same fresh worlds: teams, run folders, team files, pretrained teams, results as JSON.

    The keys of a mapping name the methods. `baselines` are names (`icmape list`), `module:Class` or teams; the default
    is all that fit the problem, and `["none"]` disables them. With `out`, table, numbers and figure are written there.
    """
    from icmape.evaluation.comparison import compare as play_all
    from icmape.evaluation.comparison import plan

    names = list(sources) if isinstance(sources, Mapping) else []
    listed = sources.values() if isinstance(sources, Mapping) else sources
    methods = [source if isinstance(source, Team) else os.fspath(source) for source in listed]
    folder = None if out is None else Path(out)
    planned = plan(methods, episodes, seed, names, baselines, baseline_episodes)
    comparison = play_all(planned, folder=folder)
    if folder is not None:
        from icmape.plot.comparison_table import write_comparison

        write_comparison(comparison, folder)
    return comparison


def with_display(
    work: Callable[[Callback | None], Run], config: Config, callback: Callback | None, progress: bool
) -> Run:
    """Run `work` with a callback that calls the live display (if `progress`) and the caller's callback."""
    if not progress:
        return work(callback)
    from icmape.plot.progress import display

    with display(config) as show:

        def tell(report: Any) -> None:
            show(report)
            if callback:
                callback(report)

        return work(tell)
