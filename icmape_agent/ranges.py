"""The values that a reading may have."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Range:
    """The values of a part of an observation: numbers, or arrays that broadcast to the joint observation.

    Values that the storage type cannot hold, infinity and NaN are never within a range.
    """

    low: Any = -np.inf
    high: Any = np.inf
    whole: Any = False  # only whole numbers

    def in_words(self) -> str:
        """The range in words: "0 or 1", "whole numbers from 0 to 24", "finite numbers"."""
        low, high, whole = float(np.min(self.low)), float(np.max(self.high)), bool(np.all(self.whole))
        if whole and (low, high) == (0, 1):
            return "0 or 1"
        numbers = "whole numbers" if whole else "numbers"
        return f"{numbers} from {low:.7g} to {high:.7g}" if max(-low, high) < 1e30 else f"finite {numbers}"


BIT = Range(0, 1, whole=True)
"""The range of a reading that is 0 or 1."""


class Part(NamedTuple):
    """One array of the joint observation and its range, within what its type stores."""

    name: str
    shape: tuple[int, ...]  # of one agent
    dtype: Any
    limits: Range  # arrays in the shape of the joint observation

    def limits_of(self, agent: int | None) -> Range:
        """The range of one agent, or of all of them."""
        every = self.limits
        return every if agent is None else Range(every.low[agent], every.high[agent], every.whole[agent])

    def in_words(self, agent: int | None = None) -> str:
        """Type, shape and range."""
        named = f"{self.name}: " if self.name else ""
        return f"{named}{self.dtype} of shape {self.shape}, {self.limits_of(agent).in_words()}"

    def within(self, values: np.ndarray, agent: int | None = None) -> np.ndarray:
        """Which values (leading axes, and the agents' unless one is named) are in the range."""
        limits = self.limits_of(agent)
        inside = (values >= limits.low) & (values <= limits.high)
        whole = values.dtype.kind in "biu" or ~limits.whole | (values == np.floor(values))
        return np.asarray(inside & whole)
