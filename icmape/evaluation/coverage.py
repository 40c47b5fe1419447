"""Whether credible sets hold the truth as often as they say."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from icmape.problem import HypothesisSpace
from icmape.problem.credible import CredibleSet, credible_among, credible_set

__all__ = ["Coverage", "CredibleSet", "coverage", "credible_set"]


class Coverage(NamedTuple):
    """How often credible sets of a level hold a right answer, and how many answers are in them."""

    level: float
    covered: float
    size: float  # mean
    episodes: int


def coverage(
    space: HypothesisSpace, scores: np.ndarray, truths: np.ndarray, levels: Sequence[float]
) -> tuple[Coverage, ...]:
    """Of many posteriors (episodes, ...) and what was true."""
    right, sizes = np.zeros((2, len(levels), len(scores)))
    for index, (one, truth) in enumerate(zip(scores, truths, strict=True)):
        ranked = space.ranked(one)
        for row, level in enumerate(levels):
            found = credible_among(*ranked, level)
            right[row, index], sizes[row, index] = space.among(found.answers, truth), len(found.answers)
    rows = zip(levels, right.mean(axis=1).tolist(), sizes.mean(axis=1).tolist(), strict=True)
    return tuple(Coverage(*row, len(scores)) for row in rows)
