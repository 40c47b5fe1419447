"""Sweeps over workers of which some die: every run is in the table, and none was done twice to its end."""

import dataclasses
import errno
import json
import os
import signal
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import jax
import pytest

from icmape import UserError, cli
from icmape.learning import run as run_module
from icmape.learning import train
from icmape.learning.checkpoints import pack_checkpoint
from icmape.learning.run_files import read_metrics
from icmape.sweeps import attempts, places, pull
from icmape.sweeps.pull import forget_failures, read_plan, states, work, write_plan
from icmape.sweeps.runs import build, read_result
from icmape.sweeps.spec import Run, read_spec, runs_of
from icmape.sweeps.table import write_table
from tests.sweeps.spec import SPEC, SPEC_FILE, sweep, wait_for

SPEC_RUN = runs_of({**SPEC, "grid": {"seed": [1]}})[0].to_dict()

WORKER = """
import sys, time
from pathlib import Path

out, number = Path(sys.argv[1]), int(sys.argv.pop(2))
while number > 0 and not list(out.glob("*/metrics.jsonl")):
    time.sleep(0.05)  # the first worker compiles, the others find its programs on the disk

from icmape.sweeps import pull
from icmape.sweeps.__main__ import main

do = pull.do

def stopping(run, folder, named, tell):
    def report(progress):
        tell(progress)
        while progress.iteration == 4 and (out / "wait").exists():
            time.sleep(0.01)
    return do(run, folder, named, report)

pull.do = stopping
code = main(sys.argv[1:])
from icmape.learning import run
print(len(run._PROGRAMS), "programs were compiled or read")
sys.exit(code)
"""
"""A worker whose runs stop at iteration 4, behind the checkpoint of iteration 2, as long as a file is there."""


def check_all_done(out: Path, runs: list[Run]) -> None:
    """Each run has its result, from one training without a gap and with its own settings, and its row in the table."""
    assert states(out, runs) == {"done": len(runs), "failed": {}, "runs": len(runs)}
    for run in runs:
        rows = read_metrics(out / run.name / "metrics.jsonl")
        assert [row["iteration"] for row in rows] == list(range(2, 14, 2))
    last = [read_metrics(out / run.name / "metrics.jsonl")[-1]["inference_loss"] for run in runs]
    assert len(set(last)) == len(runs), "no two runs had the same seed and learning rate"
    rows = (out / "table.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == [run.name for run in runs]


@pytest.mark.filterwarnings("ignore:os.fork", "ignore:This process")  # a child only writes files, until it is killed
def test_a_run_that_kills_its_workers_comes_last_and_then_has_failed(tmp_path, monkeypatch):
    """One worker, which is started again: without a count it would begin the first run for ever."""
    deadly, *others = runs = sweep(tmp_path, seed=[1, 2, 3])

    def do(run: Run, folder: Path, *_) -> None:
        if run.name == deadly.name:
            os.kill(os.getpid(), signal.SIGKILL)
        write_result(run, folder)

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


def test_twelve_runs_over_two_workers_one_of_which_is_killed(tmp_path, capsys):
    """It is started again, and its run goes on from the checkpoint. The same command then repeats nothing."""
    spec, out = tmp_path / "twelve.toml", tmp_path / "out"
    spec.write_text(SPEC_FILE + "[grid]\ninference_lr = [0.001, 0.01]\nseed = [1, 2, 3, 4, 5, 6]\n")
    write_plan(out, runs := read_spec(spec))
    (out / "wait").touch()
    workers = places.Local([("-c", WORKER, str(out), str(number)) for number in (0, 1)], out)
    begun = [out / run.name / "metrics.jsonl" for run in runs[:2]]
    wait_for(lambda: all(path.exists() and len(read_metrics(path)) == 2 for path in begun))
    first, second = workers.processes
    first.kill()
    first.wait()
    (out / "wait").unlink()
    wait_for(lambda: workers.alive() == 0)
    assert workers.processes[0] is not first, "it was started again"
    assert workers.processes[1] is second
    assert workers.codes() == [0, 0]
    logs = [(out / f"worker-{number}.log").read_text() for number in (0, 1)]
    ended = Counter(line.removesuffix(": done") for log in logs for line in log.splitlines() if line.endswith(": done"))
    assert ended == Counter(run.name for run in runs), "no run was done twice to its end"
    assert "".join(logs).count(f"{runs[0].name}: begins") == 2
    assert "".join(logs).count(f"{runs[0].name}: 2 of 12") == 1, "it went on from its checkpoint"
    assert all(log.count("1 programs were compiled or read") == 1 for log in logs), "settings are traced"
    results = [read_result(run, out / run.name) for run in runs]
    assert cli.main(["sweep", str(spec), "--out", str(out)]) == 0
    assert "12 of 12 runs done" in capsys.readouterr().out
    assert [read_result(run, out / run.name) for run in runs] == results, "nothing was run again"
    check_all_done(out, runs)
    spec.write_text(spec.read_text().replace("5, 6]", "5, 7]"))
    assert cli.main(["sweep", str(spec), "--out", str(out)]) == 2
    assert "holds another sweep" in capsys.readouterr().err


def test_a_run_that_fails_ends_alone_and_is_tried_again_by_the_next_command(tmp_path, monkeypatch):
    runs = sweep(tmp_path, seed=[1, 2])
    faults = [ValueError("a fault")]

    def do(run: Run, folder: Path, *_) -> None:
        if faults:
            raise faults.pop()
        write_result(run, folder)

    monkeypatch.setattr("icmape.sweeps.pull.do", do)
    assert work(tmp_path) == 1
    assert states(tmp_path, runs) == {"done": 1, "failed": {runs[0].name: "ValueError: a fault"}, "runs": 2}
    assert work(tmp_path) == 0
    forget_failures(tmp_path, runs)
    assert work(tmp_path) == 1
    assert states(tmp_path, runs) == {"done": 2, "failed": {}, "runs": 2}


def test_a_result_that_is_seen_late_is_not_done_again(tmp_path, monkeypatch):
    """A client of a network file system may believe for a minute that a file of another host is not there.

    It looks again after it wrote to the folder. This stand-in shows a result from then on.
    """
    (run,) = runs = sweep(tmp_path, seed=[1])
    (tmp_path / run.name).mkdir()
    write_result(run, tmp_path / run.name)
    wrote, begin, over = [], attempts.begin, pull.is_over
    monkeypatch.setattr(attempts, "begin", lambda folder: wrote.append(begin(folder)))
    monkeypatch.setattr(pull, "is_over", lambda run, out: bool(wrote) and over(run, out))
    monkeypatch.setattr(pull, "do", lambda *_: pytest.fail("it was done twice"))
    assert work(tmp_path) == 0
    assert states(tmp_path, runs) == {"done": 1, "failed": {}, "runs": 1}
    assert attempts.killed(tmp_path / run.name) == 0


def write_result(run: Run, folder: Path) -> None:
    (folder / "result.json").write_text(json.dumps({"run": run.to_dict()}))


def test_a_plan_that_is_none_is_told(tmp_path):
    with pytest.raises(UserError, match="holds no sweep"):
        read_plan(tmp_path)
    (tmp_path / "sweep.json").write_text('[{"name": 3}]')
    with pytest.raises(UserError, match="no list of runs"):
        read_plan(tmp_path)
    (tmp_path / "sweep.json").write_text(json.dumps([{**SPEC_RUN, "name": "../elsewhere"}]))
    with pytest.raises(UserError, match="no name of a run"):
        read_plan(tmp_path)


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
    kept = json.loads((tmp_path / "table.json").read_text())["runs"]
    assert [run["faults"] for run in kept] == [{}, {"2": "actor_loss"}]


def test_programs_are_kept_for_the_same_settings_of_jax_only(monkeypatch):
    """A run with another precision, or with other shapes, is another program."""
    lowered = types.SimpleNamespace(compile=lambda compiler_options: object())
    monkeypatch.setattr(train, "advance", types.SimpleNamespace(lower=lambda *inputs: lowered))
    monkeypatch.setattr(run_module, "_PROGRAMS", {})
    problem, config = build(runs_of({**SPEC, "grid": {"seed": [1]}})[0])
    one, two = (train.start.eval_shape(problem, config.for_programs(), jax.numpy.arange(n)) for n in (1, 2))
    first = run_module._program(problem, config, one, None)
    other = dataclasses.replace(config, seeds=(5,), actor_lr=0.5)
    assert run_module._program(problem, other, one, None) is first
    assert run_module._program(problem, config, two, None) is not first
    assert run_module._program(problem, dataclasses.replace(config, num_envs=16), one, None) is not first
    with jax.default_matmul_precision("highest"):
        assert run_module._program(problem, config, one, None) is not first
