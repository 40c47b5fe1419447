"""Credible sets: the fewest answers that together are right with a stated probability, by an inference's account."""

from typing import NamedTuple

import numpy as np

from icmape.errors import UserError
from icmape.problems import HypothesisSpace

LEVEL = 0.95


class CredibleSet(NamedTuple):
    """Answers, most probable first. For top-k questions: cells, one of which is among the true ones."""

    answers: np.ndarray
    probability: float  # that a right answer is among them
    level: float


def credible_set(space: HypothesisSpace, scores: np.ndarray, level: float = LEVEL) -> CredibleSet:
    """The smallest set of answers that reaches a level."""
    if not 0 < level < 1:
        raise UserError(f"a credible set's level lies between 0 and 1; given {level}")
    answers, adds = space.ranked(np.asarray(scores))
    reached = np.cumsum(adds)
    count = min(int(np.searchsorted(reached, level)) + 1, len(answers))
    return CredibleSet(answers[:count], min(float(reached[count - 1]), 1.0), level)


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
