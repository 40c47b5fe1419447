"""A run's folder: what was written is whole, and an interrupted run goes on as if it had never stopped."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from icmape.errors import UserError
from icmape.io import write_atomically
from icmape.learning import run as run_module
from icmape.learning import train
from icmape.learning.checkpoints import read_checkpoint, save_checkpoint
from icmape.learning.planning import read_rounds
from icmape.learning.presets import preset
from icmape.learning.run import Run, resume_run, train_run
from icmape.learning.run_files import MetricsFile, read_metrics
from icmape.learning.run_folder import read_config, write_config
from icmape.play.team_files import load
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit

ITERATIONS = 60
SETTINGS = {
    "deltas": (0.7, 0.65),
    "delta": 0.6,  # so that the plan reaches its target, and says how long episodes are
    "iterations": ITERATIONS,
    "seeds": (3,),
    "iterations_per_call": 2,
    "num_envs": 8,
    "greedy_fraction": 0.5,
    "batch_size": 8,
    "gradient_steps": 2,
    "buffer_size": 32,
    "learning_starts": 8,
    "validation_interval": 7,
    "validation_episodes": 16,
    "settling_episodes": 64,
    "network.hidden_size": 4,
    "checkpoint_minutes": 0.0,
    "plan.iterations": 10,
    "plan.num_plans": 2,
    "plan.num_envs": 8,
    "plan.init_rounds": 2,
}
PROBLEM = {"arms": 2, "players": 2, "horizon": 8}
CONFIG = override(preset("bandit-quick").config("ppo"), SETTINGS)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from start to end by the command line, in a process of its own."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    flags = []
    for name, value in SETTINGS.items():
        flags += [f"--{name.replace('_', '-')}", *map(str, value if isinstance(value, tuple) else (value,))]
    for name, value in PROBLEM.items():
        flags += [f"--problem.{name}", str(value)]
    command = [sys.executable, "-m", "icmape.cli", "train", "bandit-quick", "--algorithm", "ppo"]
    command += [*flags, "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_there_is_a_team_for_every_delta(uninterrupted: Path) -> None:
    found = {path.parent.name: load(path).delta for path in uninterrupted.glob("**/team-3.safetensors")}
    assert found == {"whole": 0.6, "delta-0.7": 0.7, "delta-0.65": 0.65}


def start(folder: Path, *flags: str) -> subprocess.Popen:
    """The core's own command, which needs nothing beyond the core's dependencies."""
    command = [sys.executable, "-m", "icmape.learning", str(folder / "config.json"), *flags]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_rows(process: subprocess.Popen, folder: Path, count: int) -> None:
    """Until the run has written that many rows of metrics."""
    deadline = time.monotonic() + 120
    while len(read_metrics(folder / "metrics.jsonl")) < count:
        assert process.poll() is None, "ended too early"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def cut_while_planning(folder: Path, how: signal.Signals) -> int:
    """Start a run and end it as soon as it has said something of its plan; what it leaves with."""
    command = [sys.executable, "-m", "icmape.learning", str(folder / "config.json")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    told = next((line for line in process.stderr if "plan: 2 rounds, 2 of 10 iterations" in line), "")
    process.send_signal(how)
    process.stderr.close()
    code = process.wait(60)
    assert told, "the plan said nothing of its second iteration"
    assert {path.name for path in folder.iterdir()} == {".lock", "config.json"}, "it was over before it was cut"
    return code


def test_resume_after_sigterm_and_kill_equals_the_uninterrupted_run(uninterrupted: Path, tmp_path: Path) -> None:
    """Cut in the plan, of which nothing is kept, and twice after it."""
    folder = tmp_path / "cut"
    write_config(folder, Bandit(**PROBLEM), CONFIG)
    cut_while_planning(folder, signal.SIGKILL)

    first = start(folder, "--resume")
    wait_for_rows(first, folder, 4)
    first.send_signal(signal.SIGTERM)
    assert first.wait(60) == 130, "SIGTERM must save and leave, and say that the run is not over"
    assert 0 < read_checkpoint(folder / "checkpoint.eqx").header["iteration"] < ITERATIONS

    second = start(folder, "--resume")
    wait_for_rows(second, folder, len(read_metrics(folder / "metrics.jsonl")) + 6)
    os.kill(second.pid, signal.SIGKILL)
    second.wait(60)
    before = read_metrics(folder / "metrics.jsonl")
    assert before[-1]["iteration"] < ITERATIONS, "the run was over before it was killed: nothing was tested"

    third = start(folder, "--resume")
    assert third.wait(120) == 0

    rows, wanted = (read_metrics(where / "metrics.jsonl") for where in (folder, uninterrupted))
    assert rows[: len(before)] == before, "what was written before the kill must still be there"
    assert [drop_time(row) for row in rows] == [drop_time(row) for row in wanted]
    problem = Bandit(**PROBLEM)
    assert (folder / "plan.json").read_bytes() == (uninterrupted / "plan.json").read_bytes()
    config = dataclasses.replace(CONFIG, max_rounds=read_rounds(folder))
    like = train.start.eval_shape(problem, config, jax.numpy.asarray(config.seeds))
    states = [read_checkpoint(where / "checkpoint.eqx").states(like) for where in (folder, uninterrupted)]
    leaves = [jax.tree.leaves(jax.tree.map(as_numbers, state)) for state in states]
    for resumed, whole in zip(*leaves, strict=True):
        np.testing.assert_array_equal(resumed, whole)
    for seed in CONFIG.seeds:
        teams = [(where / f"team-{seed}.safetensors").exists() for where in (folder, uninterrupted)]
        assert all(teams)


def test_sigterm_in_the_plan_leaves_at_once(tmp_path: Path) -> None:
    write_config(tmp_path, Bandit(**PROBLEM), CONFIG)
    assert cut_while_planning(tmp_path, signal.SIGTERM) == 130


def test_the_plan_says_how_long_episodes_are(uninterrupted: Path, tmp_path: Path) -> None:
    """And a run that goes on takes it from there: 1.4 times the plan's length, two more, and the stop."""
    found = json.loads((uninterrupted / "plan.json").read_text())
    (plan,) = found["plans"]
    assert plan["seed"] == 3
    assert 0 < plan["length"] <= 2
    assert found["rounds"] == read_rounds(uninterrupted) == int(np.ceil(1.4 * plan["length"])) + 3 < PROBLEM["horizon"]
    assert np.shape(plan["actions"]) == (2, PROBLEM["players"])
    assert len(plan["accuracy"]) == 3
    copy = shutil.copytree(uninterrupted, tmp_path / "copy")
    damaged = bytearray((copy / "checkpoint.eqx").read_bytes())
    damaged[-100] ^= 8
    (copy / "checkpoint.eqx").write_bytes(damaged)  # the one before it is used
    run = resume_run(Bandit(**PROBLEM), CONFIG, copy)
    assert read_checkpoint(copy / "checkpoint.eqx").leaves == read_checkpoint(uninterrupted / "checkpoint.eqx").leaves
    assert run.finished
    assert run.config.max_rounds == found["rounds"]
    assert run.states.replay.episodes.actions.shape[2] == found["rounds"]


@pytest.mark.parametrize("content", [None, b"{", b'{"rounds": null}', b"[]"])
def test_without_its_plan_a_run_cannot_go_on(uninterrupted: Path, tmp_path: Path, content: bytes | None) -> None:
    folder = tmp_path / "run"
    shutil.copytree(uninterrupted, folder)
    (folder / "plan.json").unlink()
    if content is not None:
        (folder / "plan.json").write_bytes(content)
    with pytest.raises(UserError, match=r"plan\.json cannot be read .*train again"):
        resume_run(Bandit(**PROBLEM), CONFIG, folder)


def test_a_run_does_not_go_on_with_other_settings(uninterrupted: Path, tmp_path: Path) -> None:
    """Edited, or damaged: in config.json or in plan.json."""
    folder = shutil.copytree(uninterrupted, tmp_path / "run")
    with pytest.raises(UserError, match=r"other settings: learning\.actor_lr was 0\.\d+ and is 0\.5\. Restore"):
        resume_run(Bandit(**PROBLEM), override(CONFIG, {"actor_lr": 0.5}), folder)
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps(plan | {"rounds": plan["rounds"] + 1}))
    with pytest.raises(UserError, match=r"other settings: learning\.max_rounds was 5 and is 6"):
        resume_run(Bandit(**PROBLEM), CONFIG, folder)


class Clock:
    """Time as far as a run knows."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In place of the run's own, on which nothing takes any time."""
    clock = Clock()
    monkeypatch.setattr(run_module, "time", clock)
    return clock


def within_five_minutes() -> Run:
    return train_run(Bandit(**PROBLEM), override(CONFIG, {"minutes": 5, "iterations": 6, "deltas": ()}))


def test_minutes_are_all_that_a_run_takes(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the plan, or compilation, takes ten of five minutes, the first chunk is the last."""
    assert within_five_minutes().iteration == 6

    planned = run_module.find_plans

    def slow_plans(*args: object) -> object:
        clock.now += 600
        return planned(*args)

    monkeypatch.setattr(run_module, "find_plans", slow_plans)
    assert within_five_minutes().iteration == 2
    monkeypatch.setattr(run_module, "find_plans", planned)

    compiled = run_module.on_cpu  # asked right before the program is compiled

    def slow_compilation(*args: object) -> object:
        clock.now += 600
        return compiled(*args)

    monkeypatch.setattr(run_module, "on_cpu", slow_compilation)
    assert within_five_minutes().iteration == 2


def drop_time(row: dict) -> dict:
    return {name: value for name, value in row.items() if name != "seconds"}


def as_numbers(leaf: jax.Array) -> np.ndarray:
    is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def test_the_stored_configuration_is_the_one_that_was_asked_for(uninterrupted: Path) -> None:
    kind, arguments, config = read_config(uninterrupted / "config.json")
    assert kind == "bandit"
    assert {name: arguments[name] for name in PROBLEM} == PROBLEM
    assert config == CONFIG
    assert (config.iterations, config.iterations_per_call, config.network.hidden_size, config.greedy_fraction) == (
        ITERATIONS,
        2,
        4,
        0.5,
    )


def test_metrics_have_a_row_per_seed_and_chunk(uninterrupted: Path) -> None:
    rows = read_metrics(uninterrupted / "metrics.jsonl")
    expected = [(seed, iteration) for iteration in range(2, ITERATIONS + 1, 2) for seed in (3,)]
    assert [(row["seed"], row["iteration"]) for row in rows] == expected
    needed = {"accuracy", "tau", "step_cost", "inference_loss", "critic_loss", "actor_loss", "environment_steps"}
    assert needed <= set(rows[-1])


def test_a_folder_with_a_run_is_not_overwritten(uninterrupted: Path) -> None:
    before = (uninterrupted / "metrics.jsonl").read_bytes()
    with pytest.raises(UserError, match="already holds a run"):
        train_run(Bandit(**PROBLEM), CONFIG, uninterrupted)
    assert (uninterrupted / "metrics.jsonl").read_bytes() == before


def test_a_team_that_lies_in_the_folder_is_not_deleted(tmp_path: Path) -> None:
    team = tmp_path / "team-215.safetensors"
    team.write_bytes(b"somebody's work")
    with pytest.raises(UserError, match="already holds a run"):
        train_run(Bandit(**PROBLEM), CONFIG, tmp_path)
    assert team.read_bytes() == b"somebody's work"


def test_a_damaged_line_costs_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"seed": 1, "iteration": 2}\n{"seed": 1, "iter\x00\n[3]\n{"seed": 1, "iteration": 6}\n')
    MetricsFile(path).close()
    assert [row["iteration"] for row in read_metrics(path)] == [2, 6]


def test_a_line_cut_off_by_a_crash_is_mended_and_none_is_written_twice(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"seed": 1, "iteration": 2, "tau": 3.0}\n{"seed": 1, "itera')
    metrics = MetricsFile(path)
    metrics.write({"seed": 1, "iteration": 2, "tau": 99.0})
    metrics.write({"seed": 1, "iteration": 4, "tau": 5.0})
    metrics.close()
    assert [row["tau"] for row in read_metrics(path)] == [3.0, 5.0]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def broken(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path], "the part that was written must not stay"


def test_a_checkpoint_survives_the_round_trip_with_its_keys(tmp_path: Path) -> None:
    state = {"key": jax.random.key(7), "weights": jax.numpy.arange(3.0), "count": jax.numpy.int32(4)}
    save_checkpoint(tmp_path / "c.eqx", {"iteration": 5}, state)
    checkpoint = read_checkpoint(tmp_path / "c.eqx")
    loaded = checkpoint.states(jax.eval_shape(lambda: state))
    assert checkpoint.header == {"iteration": 5, "leaves": ["['count']", "['key']", "['weights']"]}
    assert jax.random.bits(loaded["key"]) == jax.random.bits(state["key"])
    np.testing.assert_array_equal(loaded["weights"], state["weights"])


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"foreign" + data, lambda _: b""])
def test_a_damaged_checkpoint_is_one_clear_sentence(tmp_path: Path, damage: object) -> None:
    state = {"weights": jax.numpy.arange(300.0)}
    path = tmp_path / "c.eqx"
    save_checkpoint(path, {"iteration": 5}, state)
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(UserError, match=str(path)):
        read_checkpoint(path)
