"""Rounds that begin at agreed times, for agents that cannot wait for each other."""

import time
from typing import NamedTuple

from icmape_agent.errors import UserError

LISTEN = 0.1  # of a round, for which an agent that decided waits for the stop bit of others


class Clock(NamedTuple):
    """Round t lasts from start + t·every to start + (t+1)·every, in seconds since 1970.

    An agent decides at the beginning of a round. It acts `listen` seconds later, unless the stop bit came meanwhile.
    """

    start: float
    every: float
    listen: float

    @classmethod
    def of(cls, start: float, every: float, listen: float | None = None) -> "Clock":
        """A checked clock; by default agents listen for a tenth of a round."""
        wait = LISTEN * every if listen is None else listen
        if not every > 0 or not 0 <= wait < every:
            raise UserError(f"a round takes more than 0 seconds, more than agents listen; given {every} and {wait}")
        return cls(start, every, wait)

    def round_at(self, now: float) -> int:
        """The number of the round that is on; below 0 before the start."""
        return int((now - self.start) // self.every)

    def now(self) -> int:
        """The number of the round that is on."""
        return self.round_at(time.time())

    def begins_in(self, number: int) -> float:
        """Seconds until a round begins; at least 0."""
        return max(self.start + number * self.every - time.time(), 0.0)
