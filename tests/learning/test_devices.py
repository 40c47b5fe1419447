"""Several devices give the results of one: of four, two seeds get two each, which share their worlds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from icmape.errors import UserError
from icmape.play.devices import training_mesh

ROOT = Path(__file__).parents[2]


def run_on(*counts: str) -> dict:
    """The results of a process with four devices that uses so many of them."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    command = [sys.executable, "-m", "tests.learning.on_devices", *counts]
    done = subprocess.run(command, env=os.environ | {"XLA_FLAGS": flags}, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def results() -> dict:
    return run_on("1", "4")


def test_training_gives_the_metrics_of_one_device(results):
    check_same_training(results["1"]["train"], results["4"]["train"])


def check_same_training(one: dict, several: dict) -> None:
    assert len(one["rows"]) == 2
    for expected_rows, rows in zip(one["rows"], several["rows"], strict=True):
        assert [row["seed"] for row in rows] == [3, 4]
        for expected, row in zip(expected_rows, rows, strict=True):
            assert set(row) == set(expected)
            for name in set(expected) - {"seconds"}:
                assert row[name] == pytest.approx(expected[name], rel=1e-4, abs=1e-5), name
    assert several["weights"] == pytest.approx(one["weights"], rel=1e-5)


def test_each_device_takes_its_part_of_the_memory(results):
    one, four = (results[devices]["train"]["memory"] for devices in ("1", "4"))
    assert four < 0.6 * one


def test_evaluation_gives_the_same_worlds_and_metrics(results):
    check_same_evaluation(results["1"], results["4"])


def check_same_evaluation(one: dict, several: dict) -> None:
    assert several["right"] == one["right"]
    for name, value in one["evaluation"].items():
        expected = pytest.approx(value, rel=1e-5) if isinstance(value, float) else value
        assert several["evaluation"][name] == expected, name


@pytest.mark.slow
def test_two_devices_give_the_results_of_one():
    """Each has one seed."""
    results = run_on("1", "2")
    check_same_training(results["1"]["train"], results["2"]["train"])
    check_same_evaluation(results["1"], results["2"])


@pytest.mark.parametrize("devices", [0, 5, -1])
def test_devices_that_are_not_there_are_refused(devices):
    with pytest.raises(UserError, match=r"devices lies in 1\.\.1"):
        training_mesh(2, devices)


def test_one_device_needs_no_mesh():
    assert training_mesh(3) is None
    assert training_mesh(3, 1) is None
