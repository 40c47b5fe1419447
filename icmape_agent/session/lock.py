"""One writer for a folder."""

import os
import time
from contextlib import suppress
from pathlib import Path

from icmape_agent.session.refusal import UserError

NAME = "writer.lock"
_STEP = 0.05  # seconds between two attempts


class Lock:
    """The right to write in a folder. The system gives it back when the process ends, however it ends."""

    def __init__(self, folder: Path, wait: float = 0.0):
        """Take the lock; try for `wait` seconds while another process holds it."""
        self.path = folder / NAME
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"{self.path} cannot be opened: {error.strerror}") from error
        until = time.monotonic() + wait
        while not _take(self._file):
            if time.monotonic() >= until:
                holder = os.pread(self._file, 20, 0).decode("ascii", "replace").strip()
                os.close(self._file)
                raise UserError(
                    f"{folder} is open for writing in process {holder or 'unknown'}: one process writes a session; "
                    "end that one, or send it the messages"
                )
            time.sleep(_STEP)
        with suppress(OSError):  # a full disk: the number is for people only
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        """Give the lock back."""
        os.close(self._file)


def _take(file: int) -> bool:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
