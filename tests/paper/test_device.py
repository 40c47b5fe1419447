"""The device that runs share: found in another process, with MPS where it is installed and works."""

import os
from pathlib import Path

import pytest

from paper import device
from paper.device import CPU, Device, find_device, shared

GPU = Device("gpu", "a device", 10)


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A control program that notes what it was told, and where."""
    log = tmp_path / "told"
    program = tmp_path / "bin" / device.MPS
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ -d "$CUDA_MPS_PIPE_DIRECTORY" ] && echo "$@$(cat)" >> {log}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return log


def test_mps_is_started_for_the_runs_and_stopped_at_the_end(control: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if they are interrupted."""
    monkeypatch.setattr(device, "find_device", lambda environment: GPU)
    folders: list[Path] = []

    def interrupted() -> None:
        with shared(GPU) as environment:
            assert control.read_text() == "-d\n"
            folders.append(Path(environment["CUDA_MPS_PIPE_DIRECTORY"]))
            assert folders[0].is_dir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert control.read_text() == "-d\nquit\n"
    assert not folders[0].exists()


def test_mps_that_does_not_work_is_stopped_and_not_used(control: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "find_device", lambda environment: CPU)
    with shared(GPU) as environment:
        assert environment == {}
    assert control.read_text() == "-d\nquit\n"


def test_nothing_is_started_without_mps_or_without_an_nvidia_device(
    control: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shared(Device("tpu", "another", 10)) as environment:
        assert environment == {}
    with shared(CPU) as environment:
        assert environment == {}
    monkeypatch.setenv("PATH", str(tmp_path))
    with shared(GPU) as environment:
        assert environment == {}
    assert not control.exists()


def test_the_device_is_what_another_process_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's limit is three quarters of the memory; a probe that fails means a CPU."""
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr(device, "_has_plugins", lambda: True)
    monkeypatch.setattr(device, "PROBE", "print('a warning'); print('[\"gpu\", \"NVIDIA H200\", 75]')")
    assert find_device() == Device("gpu", "NVIDIA H200", 100)
    monkeypatch.setattr(device, "PROBE", "raise SystemExit(1)")
    assert find_device() == CPU
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setattr(device, "PROBE", 'print(\'["gpu", "", 1]\')')
    assert find_device() == CPU
