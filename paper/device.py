"""The device that training runs share, and NVIDIA's Multi-Process Service, which lets programs run at the same time."""

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger("icmape")

MPS = "nvidia-cuda-mps-control"
PROBE = """import jax, json
device = jax.devices()[0]
limit = (device.memory_stats() or {}).get("bytes_limit", 0)
print(json.dumps([device.platform, device.device_kind, limit]))"""
DEFAULT_FRACTION = 0.75  # of the device's memory, which JAX takes as its limit
MOST_SECONDS = 120  # until a device answers
END_SECONDS = 5  # until MPS has ended: results are to be packed in the time that is left
USED_FRACTION = 0.9  # of the device's memory; the rest is for the context of each process, and for its programs


class Device(NamedTuple):
    """What programs run on."""

    platform: str = "cpu"
    name: str = ""
    memory: int = 0  # bytes; 0 if unknown

    @property
    def accelerator(self) -> bool:
        """Whether it is no CPU."""
        return self.platform != "cpu"


CPU = Device()


def limited(fraction: float, at_once: bool = False) -> dict[str, str]:
    """The environment of a process that takes no more of a device's memory: all of it at once, or as it needs it.

    Memory that is taken piece by piece stays in pieces. A program of 7.4 GiB then found no room within 14, and one of
    18.5 none within 37 (H200, jax 0.11).
    """
    # JAX refuses the new name of the same variable beside the old one, and an empty value is none
    other = {"XLA_CLIENT_MEM_FRACTION": ""}
    preallocate = "true" if at_once else "false"
    return other | {"XLA_PYTHON_CLIENT_PREALLOCATE": preallocate, "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{fraction:.3f}"}


def expects_accelerator() -> bool:
    """Whether JAX has a plugin for a device besides the CPU, and was not told to take the CPU (first)."""
    return not os.environ.get("JAX_PLATFORMS", "").startswith("cpu") and _has_plugins()


def find_device(environment: dict[str, str] | None = None) -> Device:
    """JAX's default device, asked in a process of its own so that this one holds none of its memory.

    The CPU if no accelerator answers, which is told where one is expected.
    """
    if not expects_accelerator():
        return CPU
    asked = {**os.environ, **(environment or {}), **limited(DEFAULT_FRACTION)}
    command = [sys.executable, "-c", PROBE]
    try:
        done = subprocess.run(command, env=asked, capture_output=True, text=True, timeout=MOST_SECONDS, check=True)
        platform, name, limit = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        log.warning("JAX has a plugin for an accelerator, which does not answer: %s", _reason(error))
        return CPU
    if platform == "cpu":
        log.warning("JAX has a plugin for an accelerator, and finds none on this machine")
        return CPU
    return Device(platform, name, int(limit / DEFAULT_FRACTION))


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"nothing came within {error.timeout:g} seconds"
    said = error.stderr.strip().splitlines() if isinstance(error, subprocess.CalledProcessError) else []
    return said[-1] if said else str(error)


def _has_plugins() -> bool:
    """Whether JAX has something besides the CPU."""
    return bool(entry_points(group="jax_plugins")) or find_spec("jax_plugins") is not None


@contextmanager
def shared(device: Device) -> Iterator[dict[str, str]]:
    """The environment of processes that share a device. MPS is started, if it is installed and works, and stopped."""
    if device.platform not in ("gpu", "cuda") or shutil.which(MPS) is None:
        yield {}
        return
    folder = Path(tempfile.mkdtemp(prefix="mps-"))
    environment = {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(folder / "log")}
    for path in environment.values():
        Path(path).mkdir()
    try:
        works = _control(environment, "-d") and find_device(environment).accelerator
        if not works:
            log.warning("MPS does not work here: programs share the device without it")
        yield environment if works else {}
    finally:
        _control(environment, words=f"quit -t {END_SECONDS - 2}\n", seconds=END_SECONDS)  # else it waits for clients
        shutil.rmtree(folder, ignore_errors=True)


def _control(environment: dict[str, str], *arguments: str, words: str = "", seconds: float = MOST_SECONDS) -> bool:
    """Run MPS's control program; whether it succeeded."""
    try:
        run = subprocess.run(
            [MPS, *arguments],
            env={**os.environ, **environment},
            input=words,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return run.returncode == 0
