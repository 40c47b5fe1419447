"""Atomic writes, file digests, and the provenance of results (version, commit, date, device)."""

import hashlib
import os
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax

from icmape.version import __version__


def write_atomically(path: Path, data: bytes) -> None:
    """Write a temporary file, flush it to disk and rename it: a reader never sees an incomplete file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


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
    return f"{cores} CPU cores" if kind == "cpu" else kind


def _commit() -> str | None:
    """The commit of the source tree, if there is one; ICMAPE_COMMIT gives it for a copy without history."""
    if "ICMAPE_COMMIT" in os.environ:
        return os.environ["ICMAPE_COMMIT"]
    here = Path(__file__).resolve().parents[1]
    if not (here / ".git").exists():
        return None
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.strip() or None
