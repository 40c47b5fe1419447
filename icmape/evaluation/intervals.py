"""Confidence intervals of fractions and means. scipy is imported lazily: the learning core does not need it."""

import math
from typing import NamedTuple

import numpy as np

from icmape.errors import UserError


class Interval(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float


def wilson_interval(successes: int, count: int, level: float = 0.95) -> Interval:
    """Wilson interval of a fraction."""
    from scipy import stats

    interval = stats.binomtest(successes, count).proportion_ci(level, method="wilson")
    return Interval(float(interval.low), float(interval.high))


def lower_bound(successes: int, count: int, level: float = 0.95) -> float:
    """One-sided Clopper-Pearson bound: it lies below the true fraction with at least this probability."""
    from scipy import stats

    if not 0 <= successes <= count or count < 1:
        raise UserError(f"a bound needs some trials and no more successes than that; given {successes} of {count}")
    _check_level(level)
    return 0.0 if successes == 0 else float(stats.beta.ppf(1 - level, successes, count - successes + 1))


def needed_successes(count: int, target: float, level: float = 0.95) -> int | None:
    """The fewest successes of `count` trials whose bound reaches the target; None if there are none."""
    if lower_bound(count, count, level) < target:
        return None
    low, high = 0, count  # the bound grows with successes
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if lower_bound(middle, count, level) >= target else (middle + 1, high)
    return low


def mean_interval(values: np.ndarray, level: float = 0.95) -> Interval:
    """Two-sided normal interval of a mean; infinite for a single value."""
    return interval_of(float(np.mean(values)), float(np.std(values)), len(values), level)


def interval_of(mean: float, deviation: float, count: int, level: float = 0.95) -> Interval:
    """The same from mean, standard deviation (the root of the mean square) and number of the values."""
    from scipy import stats

    _check_level(level)
    if count < 2:
        return Interval(-math.inf, math.inf)
    half = float(stats.norm.ppf(0.5 + level / 2)) * deviation / math.sqrt(count - 1)
    return Interval(mean - half, mean + half)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise UserError(f"a level of confidence lies between 0 and 1; given {level}")
