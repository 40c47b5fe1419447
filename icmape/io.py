"""Atomic writes, file digests, and the provenance of results (version, commit, date, device)."""

import errno
import hashlib
import os
import platform
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jax

from icmape.errors import UserError
from icmape.version import __version__

STARTED = time.time()
LEFTOVER = re.compile(r"\..+\.(?P<pid>\d+)@(?P<host>[^@/]*)\.part")
DAY = 24 * 3600
MOST_BYTES = 2**28  # of a file that is read as a whole; icmape writes none that comes near
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
NO_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF, errno.EACCES, errno.EPERM, errno.EISDIR}
"""Errors of systems that cannot synchronize a folder."""


class DiskFullError(UserError, OSError):
    """There is no room for a file."""


def write_atomically(path: Path, data: bytes) -> None:
    """Write a temporary file, flush it to disk and rename it: a reader never sees an incomplete file."""
    with prepared(path, data) as temporary:
        os.replace(temporary, path)
    sync_folder(path.parent)


@contextmanager
def prepared(path: Path, data: bytes) -> Iterator[Path]:
    """A temporary file beside `path` with this content, flushed to disk; it is deleted unless it is renamed."""
    with naming(path):
        make_folder(path.parent)
        _clean_once(path.parent.resolve())
        temporary = path.with_name(f".{path.name}.{os.getpid()}@{host()}.part")
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn the error of a full disk into one sentence that names the file."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        reason = "the disk or the quota is full" if error.errno != errno.EFBIG else "the file would exceed a size limit"
        raise DiskFullError(f"{path} cannot be written: {reason}; free some space there and try again") from error


def make_folder(folder: Path) -> None:
    """Create a folder, and flush its name to disk."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, so that a rename survives a power failure."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # a system that does not open folders
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_FOLDERS:
            raise
    finally:
        os.close(descriptor)


def host() -> str:
    """The name of this machine."""
    return platform.node() or "localhost"


@cache
def _clean_once(folder: Path) -> None:
    clean_leftovers(folder)


def clean_leftovers(folder: Path) -> list[Path]:
    """Delete temporary files whose process is dead. Those of another machine are deleted after a day."""
    deleted = []
    for path in folder.glob(".*.part"):
        found = LEFTOVER.fullmatch(path.name)
        with suppress(OSError):  # another process may delete it, too
            if found and _abandoned(int(found["pid"]), found["host"], path.stat().st_mtime):
                path.unlink()
                deleted.append(path)
    return deleted


def _abandoned(pid: int, where: str, written: float) -> bool:
    if where != host() or os.name == "nt":  # Windows cannot be asked without ending the process
        return time.time() - written > DAY
    if pid == os.getpid():  # of an earlier process that had the same number
        return written < STARTED
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # alive, and another user's
        return False
    return False


def read_bounded(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a file that is not larger than what icmape writes."""
    if (size := path.stat().st_size) > most:
        raise UserError(f"{path} has {size:,} bytes, more than such a file may have ({most:,})")
    return path.read_bytes()


def file_digest(path: Path) -> str:
    """A hash of the content of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def circumstances() -> dict[str, Any]:
    """Version, commit, date and device of a computation."""
    return {
        "icmape": __version__,
        "commit": _commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "device": device_name(),
        "jax": jax.__version__,
    }


def device_name() -> str:
    """The name of the accelerator, or the number of CPU cores that this process may use."""
    kind = jax.devices()[0].device_kind
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} CPU core{'s' * (cores != 1)}" if kind == "cpu" else kind


def _commit() -> str | None:
    """The commit of the source tree, if there is one; ICMAPE_COMMIT gives it for a copy without history."""
    if "ICMAPE_COMMIT" in os.environ:
        return os.environ["ICMAPE_COMMIT"]
    here = Path(__file__).resolve().parents[1]
    if not (here / ".git").exists():
        return None
    # a checkout's own settings may name a program that git starts: core.fsmonitor
    command = ["git", "-C", str(here), "-c", "core.fsmonitor=false"]
    command += ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.strip() or None
