"""The device that runs share: found in another process, with MPS where it is installed and works."""

import logging
import os
import time
from pathlib import Path

import pytest
from jaxlib.xla_client import generate_pjrt_gpu_plugin_options

from icmape import cli
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
    assert control.read_text() == "-d\nquit -t 3\n"
    assert not folders[0].exists()


def test_mps_that_does_not_work_is_stopped_and_not_used(
    control: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(device, "find_device", lambda environment: CPU)
    with shared(GPU) as environment:
        assert environment == {}
    assert control.read_text() == "-d\nquit -t 3\n"
    assert "MPS does not work here" in caplog.text


def test_mps_that_does_not_end_holds_nobody_up(control: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are still to be packed, and a lent machine goes back with all that was not."""
    program = control.parent / "bin" / device.MPS
    program.write_text(f'#!/bin/sh\n[ "$1" = -d ] || {{ echo stop >> {control}; exec sleep 60; }}\n')
    monkeypatch.setattr(device, "find_device", lambda environment: GPU)
    monkeypatch.setattr(device, "END_SECONDS", 2.2)
    with shared(GPU):
        began = time.monotonic()
    assert control.read_text() == "stop\n"
    assert time.monotonic() - began < 20


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


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX has something besides the CPU."""
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr(device, "_has_plugins", lambda: True)


def test_the_device_is_what_another_process_says(plugin: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's limit is three quarters of the memory."""
    monkeypatch.setattr(device, "PROBE", "print('a warning'); print('[\"gpu\", \"NVIDIA H200\", 75]')")
    assert find_device() == Device("gpu", "NVIDIA H200", 100)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setattr(device, "PROBE", 'print(\'["gpu", "", 1]\')')
    assert find_device() == CPU


@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        ("import sys; sys.exit('no device\\nCUDA_ERROR_UNKNOWN')", "does not answer: CUDA_ERROR_UNKNOWN"),
        ("import time; time.sleep(60)", "does not answer: nothing came within 3 seconds"),
        ("print()", "does not answer"),
        ('print(\'["cpu", "cpu", 0]\')', "finds none on this machine"),
    ],
)
def test_an_accelerator_that_does_not_answer_is_told(
    plugin: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, probe: str, reason: str
) -> None:
    """Else days of work begin on the CPU without a word."""
    monkeypatch.setattr(device, "PROBE", probe)
    monkeypatch.setattr(device, "MOST_SECONDS", 3)
    with caplog.at_level(logging.WARNING, "icmape"):
        assert find_device() == CPU
    assert reason in caplog.text


def test_no_training_begins_on_a_cpu_where_an_accelerator_is_expected(
    plugin: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("paper.command.find_device", lambda: CPU)
    monkeypatch.setattr("paper.command.do_all", lambda *_: pytest.fail("work began"))
    words = ["a3p5", "--train", "--fresh", "--methods", "td3", "--out", str(tmp_path)]
    assert cli.main(["reproduce", *words]) == 2
    assert "set JAX_PLATFORMS=cpu" in capsys.readouterr().err


def test_the_share_of_a_run_is_what_jax_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the same is set under its other name, beside which JAX refuses this one."""
    monkeypatch.setenv("XLA_CLIENT_MEM_FRACTION", "0.9")
    for name, value in device.limited(0.25).items():
        monkeypatch.setenv(name, value)
    options = generate_pjrt_gpu_plugin_options()
    assert (options["memory_fraction"], options["preallocate"]) == (0.25, False)
