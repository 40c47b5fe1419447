"""The queue: what starts when, within which memory and time. Processes are stand-ins that end when they are told to."""

import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from icmape.learning.run import Progress
from paper import processes, queue, work
from paper.board import lines
from paper.device import Device
from paper.estimates import OBSERVED, ROOM, memory_needed
from paper.experiments import setting_named
from paper.processes import INTERRUPTED, Note, Task, Worker
from paper.queue import CORES, DEVICE, Means, Queue, Show, do_all
from paper.work import JUDGE, TRAIN, Chain
from paper.work_plan import DONE, FAILED, LATE, NOT_RUN, Outcome, Plan

GIB = 2**30
GPU = Device("gpu", "a device", 100 * GIB)
NEED = {"td3": 60, "vdn": 30, "iql": 30, "random": 10, "ppo": 10}


def progress(iteration: int, left: float = 60.0, memory: int | None = None) -> Progress:
    row = {"seed": 215, "accuracy": 0.5, "tau": 9.0}
    return Progress(iteration, 100, 1.0, left, 1.0, [row], memory)


class Machine:
    """Stand-ins for processes. `script` says, for each look, how a process ends: outcomes, an exit code, or not yet."""

    def __init__(self, script: Callable[[Worker, int], Any]):
        self.script, self.started, self.looks = script, [], {}
        self.held: list[int] = []
        self.together: list[list[Worker]] = []

    def start(self, task: Task, plan: Plan, lane: str, environment: dict[str, str], memory: int = 0) -> Worker:
        receiving, sending = Pipe(duplex=False)
        process = SimpleNamespace(exitcode=None, killed=False)
        process.terminate = lambda: setattr(process, "exitcode", -15)
        process.kill = lambda: setattr(process, "exitcode", -9)
        process.join = lambda seconds=None: None
        worker = Worker(task, lane, process, receiving, memory)
        self.started.append((str(task.chain).rpartition("/")[2], task.part, lane, memory // GIB, environment))
        self.looks[id(worker)] = (worker, sending)
        return worker

    def look(self, current: Queue) -> None:
        """Between two looks every process gets on."""
        self.together.append(list(current.running))
        self.held.append(sum(worker.memory for worker in current.running) // GIB)
        for number, worker in enumerate(list(current.running)):
            said = self.script(worker, number)
            if isinstance(said, Progress):
                self.looks[id(worker)][1].send(said)
            elif isinstance(said, list):
                self.looks[id(worker)][1].send(said)
                worker.process.exitcode = 0
            elif isinstance(said, tuple):  # it has told its outcomes, and does not end
                self.looks[id(worker)][1].send(list(said))
            elif isinstance(said, int):
                worker.process.exitcode = said

    def names(self, part: str = TRAIN) -> list[str]:
        return [name for name, of, *_ in self.started if of == part]


def done(worker: Worker, number: int) -> list[Outcome]:
    return [Outcome(f"{worker.task.chain}/{worker.task.part}", DONE)]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Machine]:
    def make(script: Callable[[Worker, int], Any] = done) -> Machine:
        made = Machine(script)
        monkeypatch.setattr(processes, "start", made.start)
        monkeypatch.setattr(work, "has_work", lambda *_: True)
        monkeypatch.setattr(queue, "_plan_to_find", lambda chain, plan: None)
        monkeypatch.setattr(queue, "_compiles", lambda worker: False)
        monkeypatch.setattr(queue, "_memory", lambda chain, plan: NEED.get(chain.role, 1) * GIB)
        monkeypatch.setattr(queue, "LOOK_SECONDS", 0.001)
        return made

    return make


def runs(*roles: str) -> list[Chain]:
    return [Chain("a3p5", role=role) for role in roles]


def test_runs_that_fit_train_side_by_side_and_memory_is_never_exceeded(machine, tmp_path: Path) -> None:
    """90 GiB may be used: 60 and 30 fit together, a third of 30 waits until the one of 60 has ended."""
    fake = machine(
        lambda worker, number: done(worker, number) if worker.task.chain.role == "td3" or number == 0 else None
    )
    todo = runs("td3", "vdn", "iql")
    outcomes = do_all(todo, Plan(tmp_path, train=True), Means(4, GPU), Show(None, fake.look))
    assert max(fake.held) <= 90
    assert max(fake.held) >= 84
    assert sorted(fake.names()) == ["iql", "td3", "vdn"]
    assert {one.state for one in outcomes} == {DONE}
    assert len(outcomes) == 6, "each is trained and judged"


def test_each_run_gets_half_an_equal_share_at_least_and_never_more_processes_than_workers(
    machine, tmp_path: Path
) -> None:
    """It is taken at once, so that it is in one piece."""
    fake = machine()
    do_all(runs("random", "ppo", "vdn"), Plan(tmp_path, train=True), Means(2, GPU), Show(None, fake.look))
    environments = {name: e for name, part, _, _, e in fake.started if part == TRAIN}
    assert {name: held for name, part, _, held, _ in fake.started if part == TRAIN} == {
        "random": 22,
        "ppo": 22,
        "vdn": 30,
    }
    assert {e["XLA_PYTHON_CLIENT_MEM_FRACTION"] for e in environments.values()} == {"0.225", "0.300"}
    assert {e["XLA_PYTHON_CLIENT_PREALLOCATE"] for e in environments.values()} == {"true"}
    assert max(sum(worker.lane == DEVICE for worker in together) for together in fake.together) == 2


def test_no_more_than_half_of_the_runs_compile_at_once(
    machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others start when these train, or take very long."""
    look, compiles = 0, queue._compiles

    def script(worker: Worker, number: int) -> Any:
        nonlocal look
        look += number == 0
        if worker.task.part != TRAIN or look > 6:
            return done(worker, number)
        return progress(1) if look == 3 else None

    fake = machine(script)
    monkeypatch.setattr(queue, "_compiles", compiles)
    roles = ("random", "ppo", "vdn", "iql")
    do_all(runs(*roles), Plan(tmp_path, train=True), Means(4, GPU), Show(None, fake.look))
    training = [sum(worker.task.part == TRAIN for worker in together) for together in fake.together]
    assert training[:5] == [2, 2, 2, 2, 4], "what they tell is heard after the next ones were to start"
    worker = fake.start(Task(*runs("vdn"), TRAIN), Plan(tmp_path), DEVICE, {})
    assert compiles(worker)
    worker.note = "plan: compiling schedules of 8 rounds (10 to 60 s the first time)"
    assert compiles(worker)
    assert not compiles(replace(worker, began=worker.began - queue.COMPILE_SECONDS))
    worker.note = "plan: 8 rounds, 40 of 200 iterations, confidence 0.7"
    assert not compiles(worker)


def test_one_run_finds_the_schedules_that_others_share(
    machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile runs without them start. The others start once they are there, while the first trains on."""
    path, beside = tmp_path / "plan.eqx", []

    def script(worker: Worker, number: int) -> Any:
        if worker.task.part == TRAIN and worker.task.chain.role == "td3":
            if len(beside) == 3:
                path.touch()
            return done(worker, number) if len(fake.names()) == 4 else None
        return done(worker, number)

    def look(current: Queue) -> None:
        beside.append([worker.task.chain.role for worker in current.running])
        fake.look(current)

    fake = machine(script)
    monkeypatch.setattr(queue, "_plan_to_find", lambda chain, plan: None if chain.role == "random" else path)
    do_all(runs("td3", "vdn", "iql", "random"), Plan(tmp_path, train=True), Means(4, GPU), Show(None, look))
    assert beside[0] == ["td3", "random"]
    assert not any({"vdn", "iql"} & {*roles} for roles in beside[:3])
    assert sorted(fake.names()) == ["iql", "random", "td3", "vdn"]


def test_if_the_run_that_was_to_find_schedules_fails_the_next_one_finds_them(
    machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(worker: Worker, number: int) -> Any:
        failed = worker.task.part == TRAIN and worker.task.chain.role == "td3"
        return [Outcome("a/train", FAILED, "an error")] if failed else done(worker, number)

    fake = machine(script)
    monkeypatch.setattr(queue, "_plan_to_find", lambda chain, plan: tmp_path / "plan.eqx")
    outcomes = do_all(runs("td3", "vdn"), Plan(tmp_path, train=True), Means(4, GPU), Show(None, fake.look))
    assert fake.names() == ["td3", "vdn"]
    assert [one.state for one in outcomes].count(FAILED) == 1


def test_ours_come_first_then_the_longest(machine, tmp_path: Path) -> None:
    fake = machine()
    todo = runs("random", "threshold", "td3", "icmape")
    do_all(todo, Plan(tmp_path, train=True), Means(1, GPU), Show(None, fake.look))
    assert fake.names() == ["icmape", "td3", "random", "threshold"]


def test_runs_that_were_begun_come_before_all_others(machine, tmp_path: Path) -> None:
    """One that has a minute left ends in this time, and a new one would not."""
    checkpoint = tmp_path / "bandit-a3p5/threshold/checkpoint.eqx"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    fake = machine()
    todo = runs("random", "threshold", "td3", "icmape")
    do_all(todo, Plan(tmp_path, train=True), Means(1, GPU), Show(None, fake.look))
    assert fake.names() == ["threshold", "icmape", "td3", "random"]


def test_a_method_with_teams_is_only_judged(machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "is_trained", lambda setting, method, plan: method.role == "td3")
    fake = machine()
    do_all(runs("td3", "vdn"), Plan(tmp_path, train=True), Means(1, GPU), Show(None, fake.look))
    assert (fake.names(), sorted(fake.names(JUDGE))) == (["vdn"], ["td3", "vdn"])


@pytest.mark.parametrize(("count", "gib", "workers"), [(16, 140, 12), (8, 140, 6), (16, 40, 4), (1, 8, 1), (8, 0, 4)])
def test_as_many_runs_as_memory_and_cores_serve(
    monkeypatch: pytest.MonkeyPatch, count: int, gib: int, workers: int
) -> None:
    monkeypatch.setattr(queue, "cores", lambda: count)
    assert queue.default_workers(Device("gpu", "a device", gib * GIB)) == workers


def test_a_finished_run_is_judged_on_the_cpu_while_others_train(machine, tmp_path: Path) -> None:
    """The device is left to runs that wait."""

    def script(worker: Worker, number: int) -> Any:
        ends = worker.task.part == JUDGE or worker.task.chain.role == "td3" or number > 0
        return done(worker, number) if ends else None

    fake = machine(script)
    do_all(
        runs("td3", "vdn", "iql"), Plan(tmp_path, train=True), Means(1, GPU), Show(None, lambda q: _end_soon(fake, q))
    )
    lanes = [(name, part, lane) for name, part, lane, *_ in fake.started]
    assert lanes.index(("td3", JUDGE, CORES)) < lanes.index(("iql", TRAIN, DEVICE))
    judged = next(e for name, part, lane, _, e in fake.started if lane == CORES)
    assert judged["JAX_PLATFORMS"] == "cpu"


def test_no_more_analyses_run_on_the_cpu_than_cores_are_left(
    machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Queue, "spare_cores", 2)
    beside: list[int] = []

    def script(worker: Worker, number: int) -> Any:
        last = worker.lane == DEVICE and len(beside) < 5  # until then it leaves the cores to the others
        return None if last else done(worker, number)

    def look(current: Queue) -> None:
        beside.append(sum(worker.lane == CORES for worker in current.running))
        fake.look(current)

    fake = machine(script)
    rules = [Chain("a3p5", baseline=name) for name in ("random", "thompson", "tours")]
    do_all([*runs("td3", "vdn"), *rules], Plan(tmp_path, train=True), Means(1, GPU), Show(None, look))
    assert max(beside) == 2
    assert [lane for name, part, lane, *_ in fake.started if part == ""] == [CORES] * 3


def _end_soon(fake: Machine, current: Queue) -> None:
    fake.look(current)
    if any(worker.task.part == JUDGE for worker in current.running):
        return
    for worker in current.running:
        fake.looks[id(worker)][1].send(done(worker, 0))
        worker.process.exitcode = 0


@pytest.mark.parametrize("died", [False, True])
def test_a_run_that_lacks_memory_or_dies_starts_again_with_twice_as_much(machine, tmp_path: Path, died: bool) -> None:
    tries: list[int] = []

    def script(worker: Worker, number: int) -> Any:
        if worker.task.part == TRAIN:
            tries.append(worker.memory // GIB)
            if len(tries) == 1:
                return 9 if died else [Outcome("a/train", FAILED, "RESOURCE_EXHAUSTED: out of memory")]
        return done(worker, number)

    fake = machine(script)
    outcomes = do_all(runs("vdn"), Plan(tmp_path, train=True), Means(4, GPU), Show(None, fake.look))
    assert tries == [30, 60]
    assert {one.state for one in outcomes} == {DONE}


def test_a_run_that_lacks_memory_though_it_has_all_has_failed(machine, tmp_path: Path) -> None:
    fake = machine(
        lambda worker, number: (
            [Outcome("a/train", FAILED, "RESOURCE_EXHAUSTED")] if worker.task.part == TRAIN else done(worker, 0)
        )
    )
    outcomes = do_all(runs("td3"), Plan(tmp_path, train=True), Means(4, GPU), Show(None, fake.look))
    assert fake.names() == ["td3", "td3"]
    assert outcomes[0].state == FAILED


def test_a_process_that_has_told_its_outcomes_and_hangs_is_killed(
    machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As programs do that leave a device after another one has failed on it. Its place and its memory are free then."""
    monkeypatch.setattr(queue, "PATIENCE", 0.05)
    fake = machine(lambda worker, number: tuple(done(worker, number)) if worker.outcomes is None else None)
    means = Means(1, GPU, deadline=time.monotonic() + 600)
    outcomes = do_all(runs("td3", "vdn"), Plan(tmp_path, train=True), means, Show(None, fake.look))
    assert {one.state for one in outcomes} == {DONE}
    assert len(outcomes) == 4


def test_a_process_that_does_not_end_when_it_is_asked_to_is_killed(
    machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an interruption would wait for it, and what the others have saved would not be packed."""
    fake, deaf = machine(lambda worker, number: None), []

    def interrupted(current: Queue) -> None:
        for worker in current.running:
            worker.process.terminate = lambda: None
            deaf.append(worker.process)
        raise KeyboardInterrupt

    monkeypatch.setattr(queue, "PATIENCE", 0.0)
    monkeypatch.setattr(queue, "END_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        do_all(runs("td3"), Plan(tmp_path, train=True), Means(1, GPU), Show(None, interrupted))
    assert len(fake.started) == 1
    assert [process.exitcode for process in deaf] == [-9]


def test_before_the_limit_runs_save_and_what_waits_is_left(machine, tmp_path: Path) -> None:
    """Two at work are asked to end once; the third is not begun. Nothing is done after the limit."""
    fake = machine(lambda worker, number: None)
    means = Means(2, GPU, deadline=time.monotonic() + queue.END_SECONDS + 0.3)
    outcomes = do_all(runs("vdn", "iql", "ppo"), Plan(tmp_path, train=True), means, Show(None, fake.look))
    assert time.monotonic() < means.deadline
    assert len(fake.started) == 2
    assert {(one.state, one.why) for one in outcomes} == {(NOT_RUN, LATE)}
    assert len(outcomes) == 3


def test_a_run_whose_chunks_are_long_is_asked_to_end_two_of_them_before(machine, tmp_path: Path) -> None:
    """It comes to its end only behind the chunk that it is in."""

    def script(worker: Worker, number: int) -> None:
        worker.longest = 30.0

    fake = machine(script)
    means = Means(1, GPU, deadline=time.monotonic() + queue.END_SECONDS + 55)
    outcomes = do_all(runs("vdn"), Plan(tmp_path, train=True), means, Show(None, fake.look))
    assert [(one.state, one.why) for one in outcomes] == [(NOT_RUN, LATE)]
    assert means.deadline - time.monotonic() > queue.END_SECONDS + 30


def test_what_a_worker_tells_is_told_apart(machine, tmp_path: Path) -> None:
    """The longest time between two reports is that of a chunk. The first report comes after compiling."""
    fake = machine()
    worker = fake.start(Task(*runs("vdn")), Plan(tmp_path), DEVICE, {})
    sending = fake.looks[id(worker)][1]
    worker.told -= 100.0
    for message in (Note("compiling"), progress(1), "a warning", INTERRUPTED):
        sending.send(message)
    assert worker.listen() == ["a warning"]
    assert (worker.note, worker.progress.iteration, worker.longest) == ("compiling", 1, 0.0)
    assert (worker.interrupted, worker.outcomes) == (True, None)
    worker.told -= 100.0
    sending.send(progress(2))
    sending.send(done(worker, 0))
    assert worker.listen() == []
    assert 100.0 <= worker.longest < 110.0
    assert worker.outcomes == done(worker, 0)


def test_what_is_too_long_for_the_time_left_is_not_begun(machine, tmp_path: Path) -> None:
    """And nobody waits for the limit."""
    fake = machine()
    means = Means(2, GPU, deadline=time.monotonic() + queue.JUDGE_SECONDS - 5)
    outcomes = do_all([Chain("a3p5", baseline="random")], Plan(tmp_path, train=True), means, Show(None, fake.look))
    assert [(one.state, one.why) for one in outcomes] == [(NOT_RUN, LATE)]
    assert fake.started == []
    assert means.deadline - time.monotonic() > queue.JUDGE_SECONDS - 15


def test_without_an_accelerator_a_process_does_a_whole_chain_on_one_thread(machine, tmp_path: Path) -> None:
    fake = machine()
    do_all(
        [*runs("td3", "vdn"), Chain("a3p5", baseline="random")],
        Plan(tmp_path, train=True),
        Means(2),
        Show(None, fake.look),
    )
    assert [(part, memory) for _, part, _, memory, _ in fake.started] == [("", 0)] * 3
    assert all("multi_thread_eigen=false" in environment["XLA_FLAGS"] for *_, environment in fake.started)


def test_the_display_has_iterations_seeds_and_what_is_left(machine, tmp_path: Path) -> None:
    shown: list[list[str]] = []

    def script(worker: Worker, number: int) -> Any:
        return progress(40, left=90.0, memory=7 * GIB) if worker.progress is None else done(worker, number)

    fake = machine(script)

    def look(current: Queue) -> None:
        if current.running and current.running[0].progress:
            shown.append(lines(current))
        fake.look(current)

    plan = Plan(tmp_path, train=True)
    do_all(runs("td3", "vdn"), plan, Means(1, GPU), Show(None, look))
    assert shown[0][0] == "a3p5/td3, device, 40 of 100, 215: 0.5 at 9, 7.0 GiB, 1.5 min"
    assert shown[0][1].startswith("1 at work, 1 waiting; training ends in about 12.2 min")
    of = setting_named("a3p5")
    assert (tmp_path / "bandit-a3p5/td3" / OBSERVED).exists()
    assert memory_needed(of, of.method("td3"), plan) == (7 * ROOM + 1) * GIB, "observed, not estimated"
