"""Locks of folders: one process writes, any number read."""

import errno
import json
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from icmape.errors import UserError
from icmape.io import host, make_folder

log = logging.getLogger("icmape")

NAME = ".lock"
NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_held: dict[Path, int] = {}  # by a thread of this process


class HeldError(UserError):
    """Another process has the lock."""


@contextmanager
def only_writer(folder: Path, *, required: bool = False) -> Iterator[None]:
    """Be the only process that writes to a folder, which is created; `HeldError` names the other one.

    `required`: a file system without locks is an error, not a warning.

    The system releases the lock of a process that ends, however it ends. A thread may take its own lock again.
    """
    path = folder / NAME
    if _is_ours(path):
        yield
        return
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; expected a folder")
    make_folder(folder)
    with locked(path, str(folder), required=required):
        _held[path.resolve()] = threading.get_ident()
        try:
            yield
        finally:
            del _held[path.resolve()]


def _is_ours(path: Path) -> bool:
    return _held.get(path.resolve()) == threading.get_ident()


@contextmanager
def locked(path: Path, what: str, *, required: bool = False) -> Iterator[None]:
    """Hold the lock file `path`; what it protects is named in errors."""
    with open(path, "a+b", buffering=0) as file:
        _lock(file.fileno(), path, what, required=required)
        _sign(file.fileno())
        yield


def check_free(folder: Path) -> None:
    """Raise `HeldError` if another process writes to this folder. Nothing is created."""
    path = folder / NAME
    if path.exists() and not _is_ours(path):
        with open(path, "r+b") as file:  # network file systems lock writable files only
            _lock(file.fileno(), path, str(folder), tell=False)


def _lock(descriptor: int, path: Path, what: str, tell: bool = True, required: bool = False) -> None:
    """Lock an open file until it is closed. A system without locks is told so, and nothing is locked."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not is_file(descriptor, path):  # deleted since it was opened: another process may hold its successor
            raise BlockingIOError
    except ImportError:
        reason = "this system has no file locks"
    except BlockingIOError as error:
        raise HeldError(
            f"{what} is being written by {_holder(path)}: wait until it ends, end it, or choose another folder"
        ) from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        reason = f"its file system has no locks ({error.strerror})"
    else:
        return
    if required:
        raise UserError(f"{what} cannot be locked, as {reason}: workers would do the same work; choose another folder")
    if tell:
        log.warning("%s is not locked, as %s: make sure that no other process writes to it", what, reason)


def is_file(descriptor: int, path: Path) -> bool:
    """Whether a path still names an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _sign(descriptor: int) -> None:
    """Write who holds the lock. It is only told to others, so a full disk does not matter."""
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps({"pid": os.getpid(), "host": host(), "since": since}).encode() + b"\n")


def _holder(path: Path) -> str:
    try:
        signed = json.loads(path.read_bytes())
        return f"process {int(signed['pid'])} on {str(signed['host'])!r} since {signed['since']!s}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
