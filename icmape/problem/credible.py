"""Credible sets: the smallest sets of answers that contain a right one with a given posterior probability."""

from typing import NamedTuple

import numpy as np

from icmape.errors import UserError
from icmape.problem.hypotheses import HypothesisSpace

LEVEL = 0.95


class CredibleSet(NamedTuple):
    """Answers, most probable first.

    For TopK the answers are cells. Their memberships are treated as independent.
    """

    answers: np.ndarray
    probability: float  # posterior probability of a right answer in the set; below the level if no set reaches it
    level: float


def credible_set(space: HypothesisSpace, scores: np.ndarray, level: float = LEVEL) -> CredibleSet:
    """The smallest set of answers whose probability reaches a level."""
    return credible_among(*space.ranked(np.asarray(scores)), level)


def credible_among(answers: np.ndarray, adds: np.ndarray, level: float) -> CredibleSet:
    """The credible set of ranked answers, each with the probability that it adds."""
    if not 0 < level < 1:
        raise UserError(f"a credible set's level lies between 0 and 1; given {level}")
    reached = np.cumsum(adds)
    count = min(int(np.searchsorted(reached, level)) + 1, len(answers))
    return CredibleSet(answers[:count], min(float(reached[count - 1]), 1.0), level)
