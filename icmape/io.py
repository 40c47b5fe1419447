"""Files and where they come from: atomic writes, digests, and the circumstances under which numbers were computed."""

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
    """Write beside, flush to disk, rename: a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def file_digest(path: Path) -> str:
    """What tells a file's content from another's."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def circumstances() -> dict[str, Any]:
    """By which code, when and on what something was computed."""
    return {
        "icmape": __version__,
        "commit": _commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "device": device_name(),
        "jax": jax.__version__,
    }


def device_name() -> str:
    """What computes: an accelerator's name, or how many CPU cores this process may use."""
    kind = jax.devices()[0].device_kind
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} CPU cores" if kind == "cpu" else kind


def _commit() -> str | None:
    """The commit of the source tree, if the package runs from one; ICMAPE_COMMIT says it for a copy without history."""
    if "ICMAPE_COMMIT" in os.environ:
        return os.environ["ICMAPE_COMMIT"]
    here = Path(__file__).resolve().parents[1]
    if not (here / ".git").exists():
        return None
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None
