"""Whether credible sets hold the truth as often as they say."""

from typing import NamedTuple

import numpy as np

from icmape.problems import HypothesisSpace
from icmape.problems.credible import LEVEL, CredibleSet, credible_set

__all__ = ["Coverage", "CredibleSet", "coverage", "credible_set"]


class Coverage(NamedTuple):
    """How often credible sets of a level hold a right answer, and how many answers are in them."""

    level: float
    covered: float
    size: float  # mean
    episodes: int


def coverage(space: HypothesisSpace, scores: np.ndarray, truths: np.ndarray, level: float = LEVEL) -> Coverage:
    """Of many posteriors (episodes, ...) and what was true."""
    found = [credible_set(space, one, level) for one in scores]
    right = [space.among(each.answers, truth) for each, truth in zip(found, truths, strict=True)]
    return Coverage(level, float(np.mean(right)), float(np.mean([len(each.answers) for each in found])), len(found))
