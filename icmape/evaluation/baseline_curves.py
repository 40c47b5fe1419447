"""Curves of baselines: accuracy against τ as their parameter varies."""

import json
from collections.abc import Sequence
from pathlib import Path

from icmape.baselines.own import own_team
from icmape.baselines.registry import baseline_curve, baseline_names, trained_baselines, watch_baseline
from icmape.errors import UserError, nearest
from icmape.evaluation.methods import Tick
from icmape.evaluation.results import JsonCache
from icmape.evaluation.sources import own_name
from icmape.evaluation.stop_curves import StopCurve, computed_curve, curve_of, falls_silent, stop_curve
from icmape.imports import is_path, load_object
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.spec import problem_digest


def check_baselines(names: Sequence[str | Team]) -> list[str | Team]:
    """Check the names of baselines; ["none"] gives an empty list. `module:Class` and teams are accepted too."""
    if list(names) == ["none"]:
        return []
    for name in names:
        if isinstance(name, str) and is_path(name):
            load_object(name, "--baselines")
        elif isinstance(name, str) and name not in baseline_names():
            raise UserError(f"unknown baseline {name!r}: {nearest(name, [*baseline_names(), 'none'])}")
    return list(names)


def untrained_baselines() -> list[str]:
    """Names of the baselines that need no training."""
    trained = trained_baselines()
    return [name for name in baseline_names() if name not in trained]


def baseline_curves(
    problem: Problem,
    names: Sequence[str | Team],
    *,
    delta: float,
    episodes: int,
    seed: int,
    only_fitting: bool,
    folder: Path | None = None,
    tick: Tick | None = None,
) -> dict[str, StopCurve]:
    """The curve of every baseline; `only_fitting` skips those that do not fit the problem."""
    curves = {}
    for name in names:
        title = own_name(name) if isinstance(name, Team) else name
        user_defined = isinstance(name, Team) or is_path(name)  # not cached, as its code may change
        cache = JsonCache(folder / "baselines.json") if folder and not user_defined else None
        key = json.dumps(["curve", problem_digest(problem), delta, episodes, seed])
        stored = cache.get(title, key) if cache else None
        try:
            if stored is None:
                curve = baseline_stop_curve(name, problem, delta=delta, episodes=episodes, seed=seed)
                stored = curve.to_dict()  # rounded in the same way whether it was stored or not
                if cache:
                    cache.put(title, key, stored)
            curves[title] = StopCurve.from_dict(stored)
        except UserError:
            if not only_fitting:
                raise
        if tick:
            tick(1)
    return curves


def baseline_stop_curve(baseline: str | Team, problem: Problem, *, delta: float, episodes: int, seed: int) -> StopCurve:
    """The curve of a baseline as its parameter varies: a name, `module:Class`, or a team."""
    if isinstance(baseline, str) and is_path(baseline):
        baseline = own_team(baseline, problem, delta)
    if isinstance(baseline, Team):
        return stop_curve(baseline, episodes=episodes, seed=seed, target=1 - delta)
    if falls_silent(problem):
        raise UserError("baselines have no curve where agents fall silent: their STOP may not be heard")
    watched = watch_baseline(baseline, problem, delta=delta, episodes=episodes, seed=seed)
    if watched is None:
        return computed_curve(baseline_curve(baseline, problem, delta=delta), 1 - delta)
    episodes_watched, highest = watched
    return curve_of(episodes_watched, 1 - delta, seed, highest=highest)
