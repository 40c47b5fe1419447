"""The answer of a team: posterior, decision, credible set, and the reason to stop."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Array, Float

from icmape.problem import HypothesisSpace, TopK
from icmape.problem.credible import LEVEL, CredibleSet, credible_set
from icmape_agent.answers import chance_of_highest, sureness


def chance_of(space: HypothesisSpace) -> str:
    """What the probability of an answer is the chance of, where more than one is right; else empty."""
    return chance_of_highest(space.k) if isinstance(space, TopK) else ""


@dataclass(frozen=True, eq=False)
class Answer:
    """The conclusion of the inference from the data of all agents.

    `name` is the most probable answer in words; `decision` is the same as numbers of hypotheses, which count from 0.
    """

    probabilities: Float[Array, "..."]  # in the shape of the problem's hypothesis space
    decision: np.ndarray  # numbers of the most probable hypothesis, from 0: [1 0] is "capacities 2, 1"
    name: str  # of the decision, in words
    confidence: float  # probability that it is right; where several answers are, that it is one of them
    scores: np.ndarray = field(repr=False)
    space: HypothesisSpace = field(repr=False)
    why: Callable[[], str] = field(repr=False)

    def __str__(self) -> str:
        """The decision and its probability, and of what it is where more than one answer is right."""
        return f"{self.name} ({sureness(self.confidence, chance_of(self.space))})"

    def credible_set(self, level: float = LEVEL) -> CredibleSet:
        """The smallest set of answers that contains a right one with this posterior probability.

        Its answers are numbers of hypotheses, which count from 0, as in `decision`.
        """
        return credible_set(self.space, self.scores, level)

    @cached_property
    def reason(self) -> str:
        """Why the team stops after this data, or that it continues. Every agent decides from its own history."""
        return self.why()
