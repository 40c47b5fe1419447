"""Sweeps over workers of which some die: every run is in the table, and none was done twice to its end."""

import _thread
import dataclasses
import errno
import json
import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import jax
import pytest

from icmape import UserError, cli
from icmape.learning import run as run_module
from icmape.learning import train
from icmape.learning.checkpoints import pack_checkpoint
from icmape.learning.interrupts import interruptible
from icmape.learning.run_files import read_metrics
from icmape.sweeps import attempts, places
from icmape.sweeps.__main__ import main as worker_main
from icmape.sweeps.pull import forget_failures, read_plan, states, work, worker_command, write_plan
from icmape.sweeps.runs import build, read_result
from icmape.sweeps.spec import Run, runs_of
from icmape.sweeps.table import write_table

TINY = {
    "iterations": 12,
    "iterations_per_call": 2,
    "num_envs": 8,
    "batch_size": 8,
    "gradient_steps": 2,
    "buffer_size": 32,
    "learning_starts": 8,
    "validation_interval": 10,
    "validation_episodes": 16,
    "settling_episodes": 64,
    "network": {"hidden_size": 4},
    "checkpoint_minutes": 0.0,
    "plan": {"iterations": 0},
}
SPEC = {
    "preset": "bandit-quick",
    "algorithm": "ppo",
    "episodes": 50,
    "arguments": {"arms": 2, "players": 2, "horizon": 8},
    "settings": TINY,
}

SPEC_RUN = runs_of({**SPEC, "grid": {"seed": [1]}})[0].to_dict()


def sweep(out: Path, **grid: list) -> list[Run]:
    runs = runs_of({**SPEC, "grid": grid})
    write_plan(out, runs)
    return runs


def wait_for(condition: Callable[[], bool], seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def check_all_done(out: Path, runs: list[Run]) -> None:
    """Each run has its result, from one training without a gap, and its row in the table."""
    assert states(out, runs) == {"done": len(runs), "failed": {}, "runs": len(runs)}
    for run in runs:
        rows = read_metrics(out / run.name / "metrics.jsonl")
        assert [row["iteration"] for row in rows] == list(range(2, 14, 2))
    rows = (out / "table.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == [run.name for run in runs]


@pytest.mark.slow
def test_twelve_runs_over_two_workers_one_of_which_is_killed(tmp_path):
    """The leader starts it again; what it had begun goes on from its checkpoint."""
    runs = sweep(tmp_path, actor_lr=[0.001, 0.01], seed=[1, 2, 3, 4, 5, 6])
    workers = places.start("local", [worker_command(tmp_path)] * 2, tmp_path)
    assert isinstance(workers, places.Local)
    begun = tmp_path / runs[0].name / "metrics.jsonl"
    wait_for(lambda: begun.exists() and 0 < len(read_metrics(begun)) < 5)
    victims = {number: process.pid for number, process in enumerate(workers.processes)}
    holder = next(n for n in victims if runs[0].name in (tmp_path / f"worker-{n}.log").read_text())
    os.kill(victims[holder], signal.SIGKILL)
    wait_for(lambda: workers.alive() == 0)
    assert workers.processes[holder].pid != victims[holder], "it was started again"
    write_table(tmp_path, runs)
    check_all_done(tmp_path, runs)
    logs = "".join((tmp_path / f"worker-{number}.log").read_text() for number in (0, 1))
    ended = Counter(line.removesuffix(": done") for line in logs.splitlines() if line.endswith(": done"))
    assert ended == Counter(run.name for run in runs), "no run was done twice to its end"
    assert logs.count(f"{runs[0].name}: begins") == 2


def test_a_worker_that_is_killed_is_started_again(tmp_path):
    """It goes on from the checkpoint of the run that it had begun."""
    (run,) = runs = sweep(tmp_path, seed=[1])
    workers = places.start("local", [worker_command(tmp_path)], tmp_path)
    assert isinstance(workers, places.Local)
    begun = tmp_path / run.name / "metrics.jsonl"
    wait_for(lambda: begun.exists() and 0 < len(read_metrics(begun)) < 5)
    victim = workers.processes[0].pid
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: workers.alive() == 0)
    assert workers.processes[0].pid != victim
    assert workers.codes() == [0]
    write_table(tmp_path, runs)
    check_all_done(tmp_path, runs)


def test_the_command_goes_on_where_it_was_interrupted(tmp_path, capsys):
    spec = tmp_path / "two.toml"
    lines = [f"{name} = {value}" for name, value in TINY.items() if not isinstance(value, dict)]
    spec.write_text(
        'preset = "bandit-quick"\nalgorithm = "ppo"\nepisodes = 50\n[arguments]\narms = 2\nplayers = 2\nhorizon = 8\n'
        "[settings]\n" + "\n".join(lines) + "\nnetwork.hidden_size = 4\nplan.iterations = 0\n[grid]\nseed = [1, 2]\n"
    )
    out = tmp_path / "out"
    runs = runs_of({**SPEC, "grid": {"seed": [1, 2]}})
    write_plan(out, runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("icmape.sweeps.pull.do", lambda *given: (_ for _ in ()).throw(ValueError("a fault")))
        assert work(out) == 0  # two runs that failed
    assert states(out, runs)["failed"] == {run.name: "ValueError: a fault" for run in runs}
    forget_failures(out, runs)
    assert work(out) == 2
    results = [read_result(run, out / run.name) for run in runs]
    assert cli.main(["sweep", str(spec), "--out", str(out)]) == 0
    assert "2 of 2 runs done" in capsys.readouterr().out
    assert [read_result(run, out / run.name) for run in runs] == results, "nothing was run again"
    check_all_done(out, runs)
    spec.write_text(spec.read_text().replace("seed = [1, 2]", "seed = [1, 3]"))
    assert cli.main(["sweep", str(spec), "--out", str(out)]) == 2
    assert "holds another sweep" in capsys.readouterr().err


def test_workers_are_jobs_of_submitit(tmp_path):
    """Its local executor stands for Slurm."""
    pytest.importorskip("submitit")
    runs = sweep(tmp_path, seed=[1, 2])
    workers = places.Submitted([worker_command(tmp_path)] * 2, tmp_path, {"timeout_min": 10}, cluster="local")
    wait_for(lambda: workers.alive() == 0)
    assert [job.result() for job in workers.jobs] == [0, 0]
    write_table(tmp_path, runs)
    check_all_done(tmp_path, runs)


def test_what_slurm_cannot_do_is_told(tmp_path):
    """Such as submitting jobs where there is no Slurm."""
    pytest.importorskip("submitit")
    with pytest.raises(UserError, match="--on slurm"):
        places.Submitted([worker_command(tmp_path)], tmp_path, {"timeout_min": 10})


@pytest.mark.filterwarnings("ignore:os.fork", "ignore::ResourceWarning")  # Ray starts its processes in threads
def test_workers_are_tasks_of_ray(tmp_path):
    ray = pytest.importorskip("ray")
    runs = sweep(tmp_path, seed=[1, 2])
    try:
        workers = places.RayTasks([worker_command(tmp_path)] * 2, tmp_path, {"num_cpus": 1})
        wait_for(lambda: workers.alive() == 0)
        assert ray.get(workers.tasks) == [0, 0]
    finally:
        ray.shutdown()
    write_table(tmp_path, runs)
    check_all_done(tmp_path, runs)


@pytest.mark.filterwarnings("ignore:os.fork", "ignore:This process")  # a child only writes files, until it is killed
def test_a_run_that_kills_its_workers_comes_last_and_then_has_failed(tmp_path, monkeypatch):
    """One worker, which is started again: without a count it would begin the first run for ever."""
    deadly, *others = runs = sweep(tmp_path, seed=[1, 2, 3])

    def do(run: Run, folder: Path, *_) -> None:
        if run.name == deadly.name:
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / "result.json").write_text(json.dumps({"run": run.to_dict()}))

    monkeypatch.setattr("icmape.sweeps.pull.do", do)
    assert forked(lambda: work(tmp_path)) == -signal.SIGKILL
    assert states(tmp_path, runs)["done"] == 0
    assert forked(lambda: work(tmp_path)) == -signal.SIGKILL
    assert states(tmp_path, runs)["done"] == len(others)
    assert forked(lambda: work(tmp_path)) == -signal.SIGKILL
    assert states(tmp_path, runs)["failed"] == {}
    assert work(tmp_path) == 0
    (failed,) = states(tmp_path, runs)["failed"].items()
    assert failed[0] == deadly.name
    assert "its worker was killed 3 times" in failed[1]
    forget_failures(tmp_path, runs)
    assert forked(lambda: work(tmp_path)) == -signal.SIGKILL, "it is tried again"


def forked(action: Callable[[], object]) -> int:
    """The exit code of a process that does this, as `subprocess` has it."""
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_attempts_are_counted_since_the_last_checkpoint(tmp_path):
    attempts.begin(tmp_path)
    attempts.begin(tmp_path)
    (tmp_path / "checkpoint.eqx").write_bytes(pack_checkpoint({"iteration": 40}, b""))
    for count in (1, 2, 3):
        attempts.begin(tmp_path)
        assert attempts.killed(tmp_path) == count
    (tmp_path / "checkpoint.eqx").write_bytes(pack_checkpoint({"iteration": 40}, b""))  # written again, with no more
    with pytest.raises(UserError, match="killed 3 times without a new checkpoint"):
        attempts.begin(tmp_path)
    attempts.forget(tmp_path)
    attempts.begin(tmp_path)


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


def test_a_plan_that_is_none_is_told(tmp_path):
    with pytest.raises(UserError, match="holds no sweep"):
        read_plan(tmp_path)
    (tmp_path / "sweep.json").write_text('[{"name": 3}]')
    with pytest.raises(UserError, match="no list of runs"):
        read_plan(tmp_path)
    (tmp_path / "sweep.json").write_text(json.dumps([{**SPEC_RUN, "name": "../elsewhere"}]))
    with pytest.raises(UserError, match="no name of a run"):
        read_plan(tmp_path)


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


def test_without_locks_nothing_is_run(tmp_path, monkeypatch):
    runs = sweep(tmp_path, seed=[1])

    def no_locks(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(UserError, match="workers would do the same work"):
        work(tmp_path)
    assert states(tmp_path, runs)["done"] == 0


def test_a_seed_that_failed_is_named_and_not_in_the_means(tmp_path, monkeypatch):
    runs = sweep(tmp_path, seed=[1, 2])
    team = {"accuracy": 0.5, "tau": 2.0, "ece": 0.1, "delta": 0.1}
    for run, accuracy in zip(runs, (0.9, 0.1), strict=True):
        faults = {"2": "actor_loss"} if run is runs[1] else {}
        seed = run.point["seed"]
        content = {
            "teams": [{**team, "seed": seed, "accuracy": accuracy}],
            "faults": faults,
            "iterations": 3,
            "seconds": 1.0,
        }
        (tmp_path / run.name).mkdir()
        whole = json.loads(json.dumps({"run": run.to_dict(), **content}))
        (tmp_path / run.name / "result.json").write_text(json.dumps(whole))
    text = write_table(tmp_path, runs).read_text()
    assert "| 1 | 0.900 | 2.00 | 1 |" in text
    assert "FAILED: actor_loss not finite" in text


def test_programs_are_kept_for_the_same_settings_of_jax_only():
    """A run with another precision, or on another mesh, is another program."""
    problem, config = build(runs_of({**SPEC, "grid": {"seed": [1]}})[0])
    states = train.start(problem, config.for_programs(), jax.numpy.asarray([1]))
    first = run_module._program(problem, config, states, None)
    other = dataclasses.replace(config, seeds=(5,), actor_lr=0.5)
    assert run_module._program(problem, other, states, None) is first
    with jax.default_matmul_precision("highest"):
        assert run_module._program(problem, config, states, None) is not first
