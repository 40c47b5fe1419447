"""Credible sets: the fewest answers that together are right with a stated probability, by an inference's account."""

from typing import NamedTuple

import numpy as np

from icmape.errors import UserError
from icmape.problem.hypotheses import HypothesisSpace

LEVEL = 0.95


class CredibleSet(NamedTuple):
    """Answers, most probable first.

    For top-k questions: cells, one of which is among the true ones, computed as if memberships were independent.
    """

    answers: np.ndarray
    probability: float  # that a right answer is among them; below the level if no set reaches it
    level: float


def credible_set(space: HypothesisSpace, scores: np.ndarray, level: float = LEVEL) -> CredibleSet:
    """The smallest set of answers that reaches a level."""
    return credible_among(*space.ranked(np.asarray(scores)), level)


def credible_among(answers: np.ndarray, adds: np.ndarray, level: float) -> CredibleSet:
    """The same of answers that are ranked already, each with what it adds to the probability."""
    if not 0 < level < 1:
        raise UserError(f"a credible set's level lies between 0 and 1; given {level}")
    reached = np.cumsum(adds)
    count = min(int(np.searchsorted(reached, level)) + 1, len(answers))
    return CredibleSet(answers[:count], min(float(reached[count - 1]), 1.0), level)
