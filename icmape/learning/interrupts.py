"""Ctrl-C and SIGTERM end loops between two steps."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from icmape.play.processes import agreed

log = logging.getLogger("icmape")


class Asked:
    """Whether a signal has come: to any process of the run, or to this one."""

    requested = False

    def __call__(self) -> bool:
        """All processes of a run must ask."""
        return agreed(self.requested)

    def here(self) -> bool:
        """Of this process alone."""
        return self.requested


@contextmanager
def interruptible(message: str = "stopping after these iterations and saving") -> Iterator[Asked]:
    """Ctrl-C and SIGTERM end the loop after the current chunk; a second Ctrl-C interrupts at once."""
    asked = Asked()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.requested = True
        log.warning("%s: %s", "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name, message)

    try:
        old = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # signals can only be handled in the main thread
        yield asked
        return
    try:
        yield asked
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Treat SIGTERM, SIGHUP and the signal of Slurm as Ctrl-C, so that what was started is ended too."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    old = {s: signal.signal(s, interrupt) for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def preempted_by_signal() -> None:
    """Treat SIGUSR2 as SIGTERM in this process: Slurm sends it to all processes of a job, 90 seconds before their end.

    It would kill a process without a handler.
    """
    signal.signal(signal.SIGUSR2, lambda number, frame: signal.raise_signal(signal.SIGTERM))
