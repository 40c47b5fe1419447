"""Attempts at a run that did not come to an end: a worker that is killed writes no reason down.

The file is written before an attempt and deleted after it, however it ends; a kill alone leaves it behind. Whoever
calls holds the lock of the run's folder.
"""

import json
from contextlib import suppress
from pathlib import Path

from icmape.errors import UserError
from icmape.io import read_bounded, write_atomically
from icmape.json_text import parse
from icmape.learning.checkpoints import has_checkpoint, last_checkpoint

ATTEMPTS = "attempts.json"
MOST = 3
"""Attempts without a new checkpoint between them, after which a run has failed."""


def killed(folder: Path) -> int:
    """How many attempts at the run in this folder were killed since its last checkpoint, or go on now."""
    return _read(folder)[0]


def begin(folder: Path) -> None:
    """Count an attempt; raises `UserError` if it would be one too many."""
    count, iteration = _read(folder)
    saved = _saved(folder)
    if saved > iteration:
        count = 0
    if count >= MOST:
        raise UserError(f"its worker was killed {MOST} times without a new checkpoint, by lack of memory for example")
    write_atomically(folder / ATTEMPTS, json.dumps({"begun": count + 1, "iteration": saved}).encode() + b"\n")


def forget(folder: Path) -> None:
    """No attempt is open any more."""
    (folder / ATTEMPTS).unlink(missing_ok=True)


def _read(folder: Path) -> tuple[int, int]:
    """How many were begun, and the iteration of the checkpoint from which they went on."""
    try:
        content = parse(read_bounded(folder / ATTEMPTS))
        return int(content["begun"]), int(content["iteration"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0


def _saved(folder: Path) -> int:
    """The iteration of the last whole checkpoint."""
    if has_checkpoint(folder):
        with suppress(UserError):  # the attempt itself says what is wrong with it
            return int(last_checkpoint(folder).header["iteration"])
    return 0
