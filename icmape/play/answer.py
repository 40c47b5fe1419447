"""An answer: the posterior, the fewest answers that are right with a stated probability, and the reason to stop."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Array, Float

from icmape.problem import HypothesisSpace
from icmape.problem.credible import LEVEL, CredibleSet, credible_set


@dataclass(frozen=True, eq=False)
class Answer:
    """What the inference makes of everyone's data."""

    probabilities: Float[Array, "..."]  # in the shape of the problem's hypothesis space
    decision: np.ndarray  # the most probable hypothesis
    name: str  # the same in words
    confidence: float  # probability that it is right
    scores: np.ndarray = field(repr=False)
    space: HypothesisSpace = field(repr=False)
    why: Callable[[], str] = field(repr=False)

    def __str__(self) -> str:
        """The decision and how sure it is."""
        return f"{self.name} (p = {self.confidence:.3f})"

    def credible_set(self, level: float = LEVEL) -> CredibleSet:
        """The fewest answers one of which is right with this probability, by the inference's account."""
        return credible_set(self.space, self.scores, level)

    @cached_property
    def reason(self) -> str:
        """Why the team stops with this data, or that it would go on. Every agent reads its own history for it."""
        return self.why()
