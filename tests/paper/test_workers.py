"""Several processes: who dies takes nobody along, and who is left alone ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from icmape import cli
from paper import processes, work
from paper.processes import Outbox, Task
from paper.queue import DEVICE, Means, do_all
from paper.work import Chain
from paper.work_plan import FAILED, NOT_RUN, Plan
from tests.paper import standins, tiny
from tests.paper.standins import ONE, THREE, TWO, started, wait_for

BUSY = "another process is at work on it"


def free(chain: Chain, plan: Plan) -> bool:
    """Whether no process is at work on it."""
    with work._alone(chain, plan) as found:
        return found


def test_workers_end_when_their_parent_is_killed_and_until_then_nobody_else_does_their_work(tmp_path: Path) -> None:
    """Locks are let go by the death of a process alone."""
    plan = Plan(tmp_path)
    program = subprocess.Popen([sys.executable, "-m", "tests.paper.standins", str(tmp_path)], env=os.environ)
    try:
        for chain in (ONE, TWO):
            wait_for(started(chain, plan))
        assert not free(ONE, plan)
        told: list[str] = []
        assert {(one.state, one.why) for one in work.work(TWO, plan, told.append)} == {(FAILED, BUSY)}
        assert told[0].startswith(f"nitrate/gp-map/train: failed ({BUSY})")
        assert {one.state for one in work.work(THREE, plan)} == {NOT_RUN}, "nobody is at work on that"
        assert {one.state for one in work.work(TWO, Plan(tmp_path, dry=True))} == {NOT_RUN}, "who looks may look"
        assert program.poll() is None
    finally:
        program.send_signal(signal.SIGKILL)
        assert program.wait() == -signal.SIGKILL
    end = time.monotonic() + 5
    while not (free(ONE, plan) and free(TWO, plan)):
        assert time.monotonic() < end, "workers live on"
        time.sleep(0.05)


def test_a_worker_that_dies_is_a_failure_of_its_chain_only_and_pages_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.prepare(monkeypatch.setattr)
    monkeypatch.setattr(work, "work", standins.die_or_go_on)
    monkeypatch.setattr(work, "has_work", standins.always)
    monkeypatch.setattr("paper.command.chains", lambda *_: [ONE, TWO])
    said: list[str] = []
    monkeypatch.setattr("paper.command.say", said.append)
    assert cli.main(tiny.words(tmp_path, workers=2)) == 1
    assert [line.split(" (")[0] for line in said[:2]] == ["nitrate/random: failed", "nitrate/gp-map/train: done, 0 s"]
    assert "failed: its process ended" in (tmp_path / "results.md").read_text()


def test_an_interruption_of_a_worker_ends_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(tmp_path)
    monkeypatch.setattr(work, "work", standins.interrupt_or_sleep)
    monkeypatch.setattr(work, "has_work", standins.always)
    with pytest.raises(KeyboardInterrupt):
        do_all([ONE, TWO, THREE], plan, Means(2))
    assert free(TWO, plan), "it sleeps no more"
    assert not started(THREE, plan).exists()


def test_a_worker_that_does_not_get_its_device_does_not_train_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAX takes the CPU without a word, such as beside a service for several programs that has failed."""
    plan = Plan(tmp_path)
    monkeypatch.setattr(work, "work", standins.sleep)
    worker = processes.start(Task(ONE), plan, DEVICE, {processes.PLATFORM: "gpu"})
    worker.process.join(60)
    assert worker.listen() == [f"{ONE}: its process finds no gpu"]
    assert (worker.process.exitcode, worker.outcomes) == (1, None)
    assert not started(ONE, plan).exists()


def test_a_signal_within_a_message_does_not_hold_a_worker_up() -> None:
    """Its handler tells the user, on the thread that is sending a report. A lock would wait for itself."""
    sent: list[str] = []

    class Interrupted:
        def send(self, message: str) -> None:
            if message == "report":
                tell("SIGTERM: stopping after these iterations and saving")
            sent.append(message.partition(":")[0])

    tell = Outbox(Interrupted())
    thread = threading.Thread(target=tell, args=("report",), daemon=True)
    thread.start()
    thread.join(10)
    assert sent == ["report", "SIGTERM"]


def test_what_is_there_or_cannot_be_done_is_worth_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "start", lambda *_: pytest.fail("a process was started"))
    outcomes = do_all([ONE, TWO, Chain("a3p5", role="td3")], Plan(tmp_path), Means(2))
    assert {one.state for one in outcomes} == {NOT_RUN}
    assert not work.has_work(Chain("a3p5", role="td3"), Plan(tmp_path)), "training was not asked for"
    assert work.has_work(Chain("a3p5", role="td3"), Plan(tmp_path, train=True))
