"""How unusual one group of sessions is among simulated ones: one p-value from many statistics."""

from typing import NamedTuple

import numpy as np

TAIL = 0.02  # of the groups: beyond them a tail is taken to be exponential
LEAST = 10  # groups in a tail
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
    surprise = np.stack([_surprise(column) for column in values.T], axis=1)
    largest = surprise.max(axis=1, initial=0.0)
    return Ranked(float(np.mean(largest >= largest[0])), surprise[0])


def _surprise(column: np.ndarray) -> np.ndarray:
    """-log of the probability of a value as far out, on either side. Undefined values are no surprise."""
    known = np.isfinite(column)
    out = np.zeros(len(column))
    if known.sum() >= max(DEFINED * len(column), 5 * LEAST):
        tails = np.minimum(_log_tail(column[known]), _log_tail(-column[known]))
        out[known] = np.maximum(-tails - np.log(2.0), 0.0)
    return out


def _log_tail(values: np.ndarray) -> np.ndarray:
    """log of the probability of a value as large: by counting, and exponential beyond the largest few values.

    Counting alone gives the largest value of every statistic the same rank, however far out it is.
    """
    count = len(values)
    few = max(LEAST, round(TAIL * count))
    ordered = np.sort(values)
    log = np.log1p(-np.searchsorted(ordered, values, side="left") / count)
    edge = ordered[-few]
    scale = np.mean(ordered[-few:] - edge)
    beyond = values > edge
    if scale > 0:
        log[beyond] = np.log(few / count) - (values[beyond] - edge) / scale
    return log


def two_sided(values: np.ndarray) -> float:
    """The p-value of the first value among all that are defined, for one statistic alone."""
    known = values[np.isfinite(values)]
    if not np.isfinite(values[0]):
        return float("nan")
    return min(1.0, 2 * min(float(np.mean(known >= values[0])), float(np.mean(known <= values[0]))))
