"""Curves of baselines: τ and accuracy for every value of their parameter."""

import json
from collections.abc import Sequence
from pathlib import Path

from icmape.baselines.own import own_curve
from icmape.baselines.registry import baseline_curve, baseline_names, trained_baselines
from icmape.errors import UserError, nearest
from icmape.evaluation.methods import CurvePoint, Curves, Tick
from icmape.evaluation.results import JsonCache
from icmape.evaluation.sources import own_name
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
) -> Curves:
    """The curve of every baseline; `only_fitting` skips those that do not fit the problem."""
    curves: Curves = {}
    for name in names:
        title = own_name(name) if isinstance(name, Team) else name
        user_defined = isinstance(name, Team) or is_path(name)  # not cached, as its code may change
        cache = JsonCache(folder / "baselines.json") if folder and not user_defined else None
        key = json.dumps([problem_digest(problem), delta, episodes, seed])
        points = cache.get(title, key) if cache else None
        try:
            if isinstance(name, Team):
                points = own_curve(name, episodes, seed)
            elif points is None:
                points = [tuple(p) for p in baseline_curve(name, problem, delta=delta, episodes=episodes, seed=seed)]
                if cache:
                    cache.put(title, key, points)
            curves[title] = [CurvePoint(*map(float, point)) for point in points]
        except UserError:
            if not only_fitting:
                raise
        if tick:
            tick(1)
    return curves
