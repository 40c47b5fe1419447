"""Coverage of credible sets."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from icmape.problem import HypothesisSpace
from icmape.problem.credible import CredibleSet, credible_among, credible_set

__all__ = ["Coverage", "CredibleSet", "coverage", "credible_set"]


class Coverage(NamedTuple):
    """The frequency with which credible sets of a level contain a right answer, and their mean size."""

    level: float
    covered: float
    size: float  # mean
    episodes: int


def coverage(
    space: HypothesisSpace, scores: np.ndarray, truths: np.ndarray, levels: Sequence[float]
) -> tuple[Coverage, ...]:
    """Coverage of many posteriors (episodes, ...) at several levels."""
    right, sizes = np.zeros((2, len(levels), len(scores)))
    for index, (posterior, truth) in enumerate(zip(scores, truths, strict=True)):
        ranked = space.ranked(posterior)
        for row, level in enumerate(levels):
            credible = credible_among(*ranked, level)
            right[row, index], sizes[row, index] = space.among(credible.answers, truth), len(credible.answers)
    rows = zip(levels, right.mean(axis=1).tolist(), sizes.mean(axis=1).tolist(), strict=True)
    return tuple(Coverage(*row, len(scores)) for row in rows)
