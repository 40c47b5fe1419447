"""The public bit: STOP, with the round in which it was set. The earliest round counts."""

import threading

STEP = 0.02  # seconds between two looks


class StopBit:
    """What a device or the coordinator knows of the bit."""

    def __init__(self, horizon: int):
        self.horizon, self.round, self._guard = horizon, horizon, threading.Lock()
        """The round of the stop; the horizon while nobody stopped."""

    @property
    def is_set(self) -> bool:
        """Whether somebody stopped."""
        return self.round < self.horizon

    def hear(self, number: int) -> bool:
        """Take a stop in a round; whether an earlier one is known, so that the others should hear of it again."""
        with self._guard:
            earlier = self.round < number
            self.round = min(self.round, number)
        return earlier

    @property
    def payload(self) -> bytes:
        """As it is published."""
        return str(self.round).encode()

    def heard(self, payload: bytes) -> bool:
        """Take a published one; what is none changes nothing. Whether an earlier one is known.

        What is none replaced the retained bit at the broker, so a bit that is known is an earlier one then, too.
        """
        if not payload.isdigit() or len(payload) > 6 or int(payload) >= self.horizon:
            return self.is_set
        return self.hear(int(payload))
