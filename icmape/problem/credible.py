"""Credible sets: the smallest sets of answers that contain a right one with a given posterior probability."""

import numpy as np

from icmape.problem.hypotheses import HypothesisSpace
from icmape_agent.answers import LEVEL, CredibleSet, credible_among

__all__ = ["LEVEL", "CredibleSet", "credible_among", "credible_set"]


def credible_set(space: HypothesisSpace, scores: np.ndarray, level: float = LEVEL) -> CredibleSet:
    """The smallest set of answers whose probability reaches a level."""
    return credible_among(*space.ranked(np.asarray(scores)), level)
