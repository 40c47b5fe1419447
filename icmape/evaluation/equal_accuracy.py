"""Methods at the same accuracy: τ of each at 1-δ, and differences of τ, with intervals.

Methods that were played in the same worlds are resampled together, so the sampling errors that they share cancel in a
difference. Over the seeds of a method the variance of their mean is added; the interval then uses Student's t.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from icmape.evaluation.stop_curves import StopCurve

Curves = Sequence[StopCurve]
LEVEL = 0.95


class Reading(NamedTuple):
    """τ of a method at the target: the mean over its teams, with half of its 95 % interval."""

    tau: float | None  # None if a team does not reach the target
    half: float | None  # None if too many resamples do not reach it
    reached: int  # number of teams that reach the target
    teams: int
    best: float  # highest accuracy on any curve
    best_tau: float  # where that is
    movable: bool  # whether its stops can be moved at all


class Gap(NamedTuple):
    """τ of a method less that of another one at the same accuracy, with a 95 % interval."""

    difference: float
    half: float | None
    paired: bool  # whether both were played in the same worlds

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval."""
        return None if self.half is None else (self.difference - self.half, self.difference + self.half)

    def __str__(self) -> str:
        ends = self.interval
        return f"{self.difference:+.2f}" + ("" if ends is None else f" [{ends[0]:+.2f}, {ends[1]:+.2f}]")


def reading(curves: Curves) -> Reading:
    """τ of a method at the target, from the curves of its teams."""
    best = max((curve.best for curve in curves), key=lambda point: point.accuracy)
    reached = sum(curve.tau is not None for curve in curves)
    tau = _mean(curves)
    half = None if tau is None else _half_width([(1, curves)])
    movable = any(len(curve.points) > 1 for curve in curves)
    return Reading(tau, half, reached, len(curves), best.accuracy, best.tau, movable)


def gap(method: Curves, other: Curves) -> Gap | None:
    """τ of a method less that of another one; None if one of them does not reach the target."""
    taus = _mean(method), _mean(other)
    if taus[0] is None or taus[1] is None:
        return None
    names = [{curve.resamples for curve in curves if not curve.exact} for curves in (method, other)]
    return Gap(taus[0] - taus[1], _half_width([(1, method), (-1, other)]), bool(names[0] & names[1]))


def _mean(curves: Curves) -> float | None:
    taus = [curve.tau for curve in curves]
    return None if None in taus or not taus else statistics.fmean(tau for tau in taus if tau is not None)


def _half_width(terms: Sequence[tuple[int, Curves]]) -> float | None:
    """Half of the interval of a sum of means over teams, by Welch and Satterthwaite; None if it is not bounded."""
    from scipy import stats

    if not all(curve.bounded for _, curves in terms for curve in curves):
        return None
    over_seeds = [(_variance_of_mean(curves), len(curves) - 1) for _, curves in terms if len(curves) > 1]
    total = _over_worlds(terms) + sum(variance for variance, _ in over_seeds)
    spread = sum(variance**2 / freedom for variance, freedom in over_seeds)
    freedom = total**2 / spread if spread > 0 else math.inf
    return float(stats.t.ppf(0.5 + LEVEL / 2, freedom)) * math.sqrt(total)


def _variance_of_mean(curves: Curves) -> float:
    return statistics.variance([curve.tau for curve in curves if curve.tau is not None]) / len(curves)


def _over_worlds(terms: Sequence[tuple[int, Curves]]) -> float:
    """The variance over resamples; resamples of other worlds are independent."""
    sums: dict[str, np.ndarray] = {}
    for sign, curves in terms:
        for curve in curves:
            if not curve.exact:
                share = sign * np.array(curve.resampled) / len(curves)
                sums[curve.resamples] = sums.get(curve.resamples, 0.0) + share
    return float(sum(np.nanvar(values, ddof=1) for values in sums.values()))


class Compared(NamedTuple):
    """A method at the target, and its gap to the first method."""

    name: str
    reading: Reading
    gap: Gap | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "method": self.name,
            **self.reading._asdict(),
            "gap": self.gap and {**self.gap._asdict(), "interval": self.gap.interval},
        }


def at_equal_accuracy(methods: Mapping[str, Curves]) -> list[Compared]:
    """All methods at the target, with their gaps to the first one."""
    first = next(iter(methods), None)
    return [
        Compared(name, reading(curves), None if name == first else gap(curves, methods[str(first)]))
        for name, curves in methods.items()
    ]
