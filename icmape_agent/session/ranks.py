"""How unusual one group of sessions is among simulated ones: one p-value from many statistics."""

from typing import NamedTuple

import numpy as np

TAIL = 0.02  # of the groups: beyond them a tail is taken to be exponential
LEAST = 10  # groups in a tail
EQUAL = 1e-4  # relative to numbers up to 1, absolute above: programs that differ by rounding agree up to less
EQUAL_LARGE = 1e-5  # relative to large numbers
ALIKE = 0.01  # surprises that differ by less are equal: rounding moves them by about as much
DEFINED = 0.2  # of the groups must define a statistic that counts


class Ranked(NamedTuple):
    """The p-value of the first group, and the surprise, -log p, of each of its statistics."""

    p_value: float
    surprise: np.ndarray


def rank_first(values: np.ndarray) -> Ranked:
    """Rank the first group among all (groups, statistics) by its most surprising statistic.

    All groups, the first one too, are treated alike: if they are exchangeable, the p-value is below any level with at
    most that probability, whatever the statistics are and however they depend on each other.
    """
    surprise = surprises(values)
    largest = surprise.max(axis=1, initial=0.0)
    return Ranked(float(np.mean(largest >= largest[0] - ALIKE)), surprise[0])


def surprises(values: np.ndarray) -> np.ndarray:
    """The surprise of every statistic of every group among all (groups, statistics)."""
    return np.stack([_surprise(column) for column in values.T], axis=1)


def _surprise(column: np.ndarray) -> np.ndarray:
    """-log of the probability of a value as far out, on either side. Undefined values are no surprise."""
    known = np.isfinite(column)
    out = np.zeros(len(column))
    if known.sum() >= max(DEFINED * len(column), 5 * LEAST):
        tails = np.minimum(_log_tail(column[known]), _log_tail(-column[known]))
        out[known] = np.maximum(-tails - np.log(2.0), 0.0)
    return out


def equal_within(values: np.ndarray) -> np.ndarray:
    """How far apart values of this size are and still count as equal."""
    size = np.abs(values)
    return np.maximum(EQUAL * np.minimum(size, 1.0), EQUAL_LARGE * size)


def _log_tail(values: np.ndarray) -> np.ndarray:
    """log of the probability of a value as large: by counting, and exponential beyond the largest few values.

    Counting alone gives the largest value of every statistic the same rank, however far out it is. Values that are
    equal up to rounding count as equal, and the exponential tail falls over no less than that distance.
    """
    count, near = len(values), equal_within(values)
    few = max(LEAST, round(TAIL * count))
    ordered = np.sort(values)
    log = np.log1p(-np.searchsorted(ordered, values - near, side="left") / count)
    edge = ordered[-few]
    scale = np.maximum(np.mean(ordered[-few:] - edge), near)
    beyond = values - near > edge
    log[beyond] = np.log(few / count) - (values[beyond] - edge) / scale[beyond]
    return log


def two_sided(values: np.ndarray) -> float:
    """The p-value of the first value among all that are defined, for one statistic alone."""
    known = values[np.isfinite(values)]
    if not np.isfinite(values[0]):
        return float("nan")
    near = equal_within(values[0])
    above, below = np.mean(known >= values[0] - near), np.mean(known <= values[0] + near)
    return min(1.0, 2 * min(float(above), float(below)))
