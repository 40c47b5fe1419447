"""Intervals for shares and means. scipy is imported where it is used: the learning core does without."""

import math
from typing import NamedTuple

import numpy as np

from icmape.errors import UserError


class Interval(NamedTuple):
    """From, to."""

    low: float
    high: float


def wilson_interval(successes: int, count: int, level: float = 0.95) -> Interval:
    """Wilson's interval for a share."""
    from scipy import stats

    found = stats.binomtest(successes, count).proportion_ci(level, method="wilson")
    return Interval(float(found.low), float(found.high))


def lower_bound(successes: int, count: int, level: float = 0.95) -> float:
    """Clopper and Pearson's one-sided bound: with this probability, whatever the true share, it lies below that."""
    from scipy import stats

    if not 0 <= successes <= count or count < 1:
        raise UserError(f"a bound needs some trials and no more successes than that; given {successes} of {count}")
    _check_level(level)
    return 0.0 if successes == 0 else float(stats.beta.ppf(1 - level, successes, count - successes + 1))


def needed_successes(count: int, target: float, level: float = 0.95) -> int | None:
    """The fewest successes among so many whose bound reaches the target; none if all of them would not do."""
    if lower_bound(count, count, level) < target:
        return None
    low, high = 0, count  # the bound grows with successes
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if lower_bound(middle, count, level) >= target else (middle + 1, high)
    return low


def mean_interval(values: np.ndarray, level: float = 0.95) -> Interval:
    """Two-sided interval for a mean, by the normal law; a single value says nothing about its spread."""
    from scipy import stats

    _check_level(level)
    mean = float(np.mean(values))
    if len(values) < 2:
        return Interval(-math.inf, math.inf)
    half = float(stats.norm.ppf(0.5 + level / 2) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return Interval(mean - half, mean + half)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise UserError(f"a level of confidence lies between 0 and 1; given {level}")
