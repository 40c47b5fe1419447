"""What a run is at, said through the log, so that a display can keep it in one place."""

import logging
from typing import NamedTuple

PHASE = "phase"
"""The attribute of log records that say what a run is at; other records are messages."""

TRAINING = "training"
SETTINGS = "a few seconds"
TEACHER = "up to 20 s"
JUDGING = "up to a minute"
COMPILING = "10 to 60 s the first time"
"""How long a program takes to compile on a CPU; a few seconds from the cache on disk."""

log = logging.getLogger("icmape")


class Phase(NamedTuple):
    """What a run is at."""

    name: str
    detail: str = ""
    expected: str = ""  # its length

    def __str__(self) -> str:
        """One line."""
        text = ": ".join(filter(None, (self.name, self.detail)))
        return f"{text} ({self.expected})" if self.expected else text


def begin(name: str, detail: str = "", expected: str = "") -> None:
    """What begins now, with its expected length where it is known. The same name again: news of the same phase."""
    phase = Phase(name, detail, expected)
    log.info("%s", phase, extra={PHASE: phase})
