"""The device that training runs share, and NVIDIA's Multi-Process Service, which lets programs run at the same time."""

import json
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

MPS = "nvidia-cuda-mps-control"
PROBE = """import jax, json
device = jax.devices()[0]
limit = (device.memory_stats() or {}).get("bytes_limit", 0)
print(json.dumps([device.platform, device.device_kind, limit]))"""
DEFAULT_FRACTION = 0.75  # of the device's memory, which JAX takes as its limit
MOST_SECONDS = 120  # until a device answers
USED_FRACTION = 0.95  # of the device's memory
SIDE_BY_SIDE = 4  # runs on an accelerator


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


def find_device(environment: dict[str, str] | None = None) -> Device:
    """JAX's default device, asked in a process of its own so that this one holds none of its memory."""
    if os.environ.get("JAX_PLATFORMS") == "cpu" or not _has_plugins():
        return CPU
    asked = {**os.environ, **(environment or {}), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    asked["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(DEFAULT_FRACTION)
    command = [sys.executable, "-c", PROBE]
    try:
        done = subprocess.run(command, env=asked, capture_output=True, text=True, timeout=MOST_SECONDS, check=True)
        platform, name, limit = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return CPU
    return Device(platform, name, int(limit / DEFAULT_FRACTION))


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
        yield environment if works else {}
    finally:
        _control(environment, words="quit")
        shutil.rmtree(folder, ignore_errors=True)


def _control(environment: dict[str, str], *arguments: str, words: str = "") -> bool:
    """Run MPS's control program; whether it succeeded."""
    try:
        run = subprocess.run(
            [MPS, *arguments],
            env={**os.environ, **environment},
            input=words,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=MOST_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return run.returncode == 0
