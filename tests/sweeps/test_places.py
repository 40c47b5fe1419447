"""Places where workers run: what they end with, and how they are asked to end."""

import _thread
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import pytest
import ray

from icmape import UserError, cli
from icmape.learning.interrupts import interruptible
from icmape.learning.run_files import read_metrics
from icmape.sweeps import places
from icmape.sweeps.__main__ import main as worker_main
from icmape.sweeps.pull import states, worker_command, write_plan
from icmape.sweeps.spec import Run, runs_of
from icmape.sweeps.table import write_table
from tests.sweeps.spec import SPEC, wait_for


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    """Of a sweep with a short training, and with a run whose setting real workers find to be wrong."""
    settings = {**SPEC["settings"], "iterations": 2}
    wrong = [{"seed": 2, "validation_interval": 0}]
    runs = runs_of({**SPEC, "settings": settings, "grid": {"seed": [1]}, "also": wrong})
    write_plan(tmp_path, runs)
    return runs


def check_all_ended(out: Path, runs: list[Run]) -> None:
    """The training is in the table, and so is the error of the other run."""
    trained, wrong = runs
    assert states(out, runs)["done"] == 1
    assert "validation_interval" in states(out, runs)["failed"][wrong.name]
    assert [row["iteration"] for row in read_metrics(out / trained.name / "metrics.jsonl")] == [2]
    write_table(out, runs)
    rows = (out / "table.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == [trained.name]


def test_workers_are_jobs_of_submitit(tmp_path, runs):
    """Its local executor stands for Slurm."""
    workers = places.Submitted([worker_command(tmp_path)] * 2, tmp_path, {"timeout_min": 10}, cluster="local")
    wait_for(lambda: workers.alive() == 0)
    assert workers.codes() == [0, 0]
    check_all_ended(tmp_path, runs)
    assert any(run.name in path.read_text() for run in runs for path in Path(workers.logs).glob("*.err"))


@pytest.mark.filterwarnings("ignore:os.fork", "ignore::ResourceWarning")  # Ray starts its processes in threads
def test_workers_are_tasks_of_ray(tmp_path, runs):
    try:
        workers = places.RayTasks([worker_command(tmp_path)] * 2, tmp_path, {"num_cpus": 1})
        wait_for(lambda: workers.alive() == 0)
        assert workers.codes() == [0, 0]
    finally:
        ray.shutdown()
    check_all_ended(tmp_path, runs)
    logs = "".join(path.read_text() for path in tmp_path.glob("worker-*.log"))
    assert all(f"{run.name}: begins" in logs for run in runs)


def test_a_worker_that_is_killed_below_its_task_is_started_again(tmp_path):
    """A few times. Ray and submitit do not see it, as the process that they started goes on."""
    code = (
        "import os\nwith open('begun', 'a') as file: file.write('x')\n"
        "if os.path.getsize('begun') <= {}: os.kill(os.getpid(), 9)"
    )
    assert places.do(("-c", code.format(2)), str(tmp_path)) == 0
    assert (tmp_path / "begun").read_text() == "xxx"
    (tmp_path / "begun").unlink()
    assert places.do(("-c", code.format(99)), str(tmp_path)) == -signal.SIGKILL
    assert (tmp_path / "begun").read_text() == "x" * (1 + places.RESTARTS)
    (tmp_path / "begun").unlink()
    assert places.do(("-c", code.format(99).replace(", 9)", ", 15)")), str(tmp_path)) == -signal.SIGTERM
    assert (tmp_path / "begun").read_text() == "x", "it was asked to end"


def test_a_worker_ends_when_the_task_that_started_it_is_killed(tmp_path):
    """Its run is then saved, and its lock is free for the task that Ray starts instead."""
    worker = (
        "import pathlib, signal, sys, time\n"
        "from icmape.sweeps import places\n"
        "signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path('saved').touch(), sys.exit(0)))\n"
        "places.end_with_parent(); pathlib.Path('ready').touch(); time.sleep(60)"
    )
    task = f"from icmape.sweeps import places; places.do(('-c', {worker!r}), {str(tmp_path)!r})"
    process = subprocess.Popen([sys.executable, "-c", task])
    wait_for((tmp_path / "ready").exists)
    process.kill()
    process.wait()
    wait_for((tmp_path / "saved").exists, seconds=20)


@pytest.mark.parametrize(("workers", "own", "said"), [(1, {}, "None"), (2, {}, "false"), (2, {"true"}, "true")])
def test_workers_of_one_machine_share_the_memory_of_its_accelerator(tmp_path, monkeypatch, workers, own, said):
    """JAX would give most of it to the first worker. What the user has set is kept."""
    name = "XLA_PYTHON_CLIENT_PREALLOCATE"
    monkeypatch.delenv(name, raising=False)
    for value in own:
        monkeypatch.setenv(name, value)
    local = places.Local([("-c", f"import os; print(os.environ.get({name!r}))")] * workers, tmp_path)
    wait_for(lambda: local.alive() == 0)
    assert (tmp_path / "worker-0.log").read_text().split() == [said]


@pytest.mark.parametrize(
    ("there", "given", "said"),
    [
        (("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"), None, ["0", "1", "0"]),
        (("nvidia0", "nvidia1", "nvidia2"), "2,GPU-1", ["2", "GPU-1", "2"]),
        (("nvidia0", "nvidia1"), "1", ["1", "1", "1"]),
        (("nvidia0", "nvidiactl"), None, ["None"] * 3),
        ((), None, ["None"] * 3),
    ],
)
def test_workers_of_one_machine_take_turns_with_its_accelerators(tmp_path, monkeypatch, there, given, said):
    """Each would split its runs over all of them, beside the others."""
    for name in there:
        (tmp_path / name).touch()
    monkeypatch.setattr(places, "DEVICES", tmp_path)
    monkeypatch.delenv(places.VISIBLE, raising=False)
    if given is not None:
        monkeypatch.setenv(places.VISIBLE, given)
    local = places.Local([("-c", f"import os; print(os.environ.get({places.VISIBLE!r}))")] * 3, tmp_path)
    wait_for(lambda: local.alive() == 0)
    assert [(tmp_path / f"worker-{number}.log").read_text().strip() for number in range(3)] == said


def test_the_leader_leaves_accelerators_to_its_workers(tmp_path, monkeypatch):
    """JAX would take most of one's memory as soon as the leader builds the problem of a run."""
    spec, platforms = tmp_path / "two.toml", []
    spec.write_text('preset = "bandit-quick"\n[grid]\nseed = [1, 2]\n')
    monkeypatch.setattr("icmape.cli.sweep.build", lambda *_: platforms.append(jax.config.jax_platforms))
    before = jax.config.jax_platforms
    jax.config.update("jax_platforms", None)
    try:
        assert cli.main(["sweep", str(spec), "--list"]) == 0
    finally:
        jax.config.update("jax_platforms", before)
    assert platforms == ["cpu", "cpu"]


def test_what_slurm_cannot_do_is_told(tmp_path):
    """Such as submitting jobs where there is no Slurm."""
    pytest.importorskip("submitit")
    with pytest.raises(UserError, match="--on slurm"):
        places.Submitted([worker_command(tmp_path)], tmp_path, {"timeout_min": 10})


def test_the_leader_tells_how_its_workers_ended(tmp_path, monkeypatch, capsys, caplog):
    """One is killed until it is not started again, one ends with an error."""
    spec = tmp_path / "one.toml"
    spec.write_text('preset = "bandit-quick"\n[grid]\nseed = [1, 2]\n')
    killed, wrong = "import os; os.kill(os.getpid(), 9)", "raise SystemExit(2)"

    def start(place, commands, folder, parameters):
        return places.Local([("-c", killed), ("-c", wrong)], folder)

    monkeypatch.setattr("icmape.cli.sweep.places.start", start)
    monkeypatch.setattr("icmape.cli.sweep.LOOK_SECONDS", 0.05)
    with caplog.at_level(logging.WARNING, "icmape"):
        assert cli.main(["sweep", str(spec), "--out", str(tmp_path / "out")]) == 1
    restarted = [record.message for record in caplog.records if "started again" in record.message]
    log = tmp_path / "out" / "worker-0.log"
    assert restarted == [f"a worker was killed (exit code -9) and is started again: {log}"] * 2 * places.RESTARTS
    said = " ".join(capsys.readouterr().out.split())
    assert f"2 workers ended early (exit codes -9, 2); logs: {tmp_path / 'out' / 'worker-*.log'}" in said
    assert "2 runs were not ended" in said


def test_a_worker_that_is_interrupted_asks_its_program_to_save(tmp_path):
    """As Ray and submitit end their tasks: by an exception in the main thread."""
    code = (
        "import signal, sys, time, pathlib\n"
        "signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path('saved').touch(), sys.exit(0)))\n"
        "pathlib.Path('ready').touch(); time.sleep(60)"
    )
    threading.Thread(target=interrupt_when, args=(tmp_path / "ready",)).start()
    began, before = time.monotonic(), signal.signal(signal.SIGINT, signal.default_int_handler)  # else it may be ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            places.do(("-c", code), str(tmp_path))
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 30
    assert (tmp_path / "saved").exists()


def test_a_worker_that_slurm_preempts_saves_its_run(tmp_path, monkeypatch):
    """SIGUSR2 goes to all processes of a job. The stand-in for a run waits as the training does."""
    asked = []

    def stand_in(out: Path, named: list[str]) -> None:
        with interruptible() as interrupted:
            os.kill(os.getpid(), signal.SIGUSR2)
            wait_for(lambda: interrupted() or time.monotonic() > deadline)
            asked.append(interrupted())
        os.kill(os.getpid(), signal.SIGUSR2)  # between two runs it ends the worker
        wait_for(lambda: False, seconds=10)

    monkeypatch.setattr("icmape.sweeps.__main__.work", stand_in)
    deadline = time.monotonic() + 10
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGUSR2, signal.SIGTERM)}
    try:
        assert worker_main([str(tmp_path)]) == 130
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert asked == [True]


def interrupt_when(ready: Path) -> None:
    wait_for(ready.exists)
    _thread.interrupt_main()
