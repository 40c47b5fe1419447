"""What references reach for every value of their parameter."""

import json
from collections.abc import Sequence
from pathlib import Path

from icmape.descriptions import describe
from icmape.errors import UserError, nearest
from icmape.evaluation.cache import JsonCache
from icmape.evaluation.methods import CurvePoint, Curves, Tick
from icmape.problems import Problem


def check_references(names: Sequence[str]) -> list[str]:
    """The names, or an error that tells which is unknown; "none" by itself is none."""
    from icmape.references.registry import REFERENCES

    if list(names) == ["none"]:
        return []
    for name in names:
        if name not in REFERENCES:
            raise UserError(f"unknown reference {name!r}: {nearest(name, [*REFERENCES, 'none'])}")
    return list(names)


def reference_names() -> list[str]:
    """All of them."""
    from icmape.references.registry import REFERENCES

    return list(REFERENCES)


def reference_curves(
    problem: Problem,
    names: Sequence[str],
    *,
    delta: float,
    episodes: int,
    seed: int,
    only_fitting: bool,
    folder: Path | None = None,
    tick: Tick | None = None,
) -> Curves:
    """The curve of every reference; with `only_fitting`, those that refuse the problem are left out."""
    from icmape.references.registry import reference_curve

    cache = JsonCache(folder / "references.json") if folder else None
    curves: Curves = {}
    for name in names:
        key = json.dumps([describe(problem), delta, episodes, seed])
        points = cache.get(name, key) if cache else None
        try:
            if points is None:
                points = [tuple(p) for p in reference_curve(name, problem, delta=delta, episodes=episodes, seed=seed)]
                if cache:
                    cache.put(name, key, points)
            curves[name] = [CurvePoint(*map(float, point)) for point in points]
        except UserError:
            if not only_fitting:
                raise
        if tick:
            tick(1)
    return curves
