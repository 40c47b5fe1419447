"""Several devices give the results of one: seeds are split over them, and the worlds of a seed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from jax.sharding import Mesh

from icmape.errors import UserError
from icmape.learning import run
from icmape.learning.presets import preset
from icmape.play.devices import WORLDS, training_mesh
from icmape.settings import override

ROOT = Path(__file__).parents[2]


def trained(folder: Path, *trainings: tuple[str, int, list[int], dict]) -> dict:
    """The results of a process with eight devices: name, devices, seeds and other settings of trainings."""
    file = folder / "trainings.json"
    file.write_text(json.dumps(trainings))
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    command = [sys.executable, "-m", "tests.learning.on_devices", str(file)]
    done = subprocess.run(command, env=os.environ | {"XLA_FLAGS": flags}, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


DEVICES = [("one", 1, [3, 4], {}), ("four", 4, [3, 4], {"evaluated": True}), ("failed", 4, [3, 4], {"failed": 4})]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """On four devices each of two seeds has two. `test_processes.py` has one seed on two."""
    folder = tmp_path_factory.mktemp("devices")
    return trained(folder, *DEVICES)


def test_training_gives_the_metrics_of_one_device(results):
    assert list(results["four"]["rows"]) == ["3", "4"]
    for seed in ("3", "4"):
        check_same_training(results["one"], results["four"], seed)


def check_same_training(one: dict, several: dict, seed: str) -> None:
    assert len(one["rows"][seed]) == 2
    for expected, row in zip(one["rows"][seed], several["rows"][seed], strict=True):
        assert set(row) == set(expected)
        for name in set(expected) - {"seconds"}:
            assert row[name] == pytest.approx(expected[name], rel=1e-4, abs=1e-5), name
    assert several["weights"][seed] == pytest.approx(one["weights"][seed], rel=1e-5)


def test_devices_of_a_seed_with_a_fault_do_not_keep_the_others_waiting(results):
    """XLA ends the process, or waits for ever, where only some devices come to an exchange between all of them."""
    rows = results["failed"]["rows"]
    assert [[row["accuracy"] is None for row in rows[seed]] for seed in ("3", "4")] == [[False] * 2, [True] * 2]
    for expected, row in zip(results["four"]["rows"]["3"], rows["3"], strict=True):
        assert {**row, "seconds": 0} == {**expected, "seconds": 0}


def test_each_device_takes_its_part_of_the_memory(results):
    assert results["four"]["memory"] < 0.6 * results["one"]["memory"]


def test_a_team_that_was_trained_on_some_devices_is_evaluated_on_all(results):
    """Four of eight."""
    assert results["four"]["evaluated"] == 130


def test_evaluation_gives_the_same_worlds_and_metrics(results):
    one, four = results["evaluations"]
    assert (one["devices"], four["devices"]) == ([1], [4])
    assert four["right"] == one["right"]
    for name, value in one["evaluation"].items():
        expected = pytest.approx(value, rel=1e-5) if isinstance(value, float) else value
        assert four["evaluation"][name] == expected, name


def test_batches_are_split_over_the_devices(results):
    """As those in which the networks of maps judge episodes; without that every device would do all of the work."""
    one, four = results["batches"]
    assert four["values"] == one["values"]
    assert four["work"] < 0.3 * one["work"]


UNEVEN = {"plan.iterations": 10, "num_envs": 24}
"""Two devices share all but the minibatches of 3 episodes. Three share these and the 24 worlds, not the batches of 8
episodes. Four share all but the minibatches."""


@pytest.mark.slow
def test_any_number_of_devices_gives_the_same(tmp_path):
    """With a plan. Neither the seeds nor the batches can be split over three devices."""
    numbers = (("one", 1, [3, 4]), ("two", 2, [3]), ("three", 3, [3, 4]), ("four", 4, [3]))
    results = trained(tmp_path, *((*number, UNEVEN) for number in numbers))
    for name, _, seeds in numbers[1:]:
        for seed in map(str, seeds):
            check_same_training(results["one"], results[name], seed)


def test_work_that_cannot_be_split_is_told(monkeypatch, caplog):
    """Of a run whose seed has three devices: else these are no faster than one, and nobody knows why."""
    mesh = Mock(spec=Mesh, shape={WORLDS: 3})
    monkeypatch.setattr(run, "training_mesh", lambda *_: mesh)
    ours = preset("bandit-quick")
    assert run._mesh_of(override(ours.config("td3"), {"num_envs": 33, "batch_size": 32}), None) is mesh
    assert "3 devices, and batch_size (32) cannot be divided" in caplog.text
    caplog.clear()
    run._mesh_of(override(ours.config("ppo"), {"num_envs": 96, "gradient_steps": 3}), None)
    assert "3 devices, and num_envs / gradient_steps (32) cannot be divided" in caplog.text
    caplog.clear()
    run._mesh_of(override(ours.config("ppo"), {"num_envs": 48}), None)
    assert not caplog.text


@pytest.mark.parametrize("devices", [0, 5, -1])
def test_devices_that_are_not_there_are_refused(devices):
    with pytest.raises(UserError, match=r"devices lies in 1\.\.1"):
        training_mesh(2, devices)


def test_one_device_needs_no_mesh():
    assert training_mesh(3) is None
    assert training_mesh(3, 1) is None
