"""Chains in several processes at once: those that train share the device, others use the CPU's cores.

A run starts as soon as its memory fits; one that needs the schedules that another is to find waits for them. When the
time is nearly over, runs save their state and end.
"""

import os
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import NamedTuple

from icmape.learning.checkpoints import has_checkpoint
from icmape.learning.phases import COMPILING
from paper import processes, work
from paper.device import CPU, DEFAULT_FRACTION, USED_FRACTION, Device, limited
from paper.estimates import Estimate, estimate, memory_needed, observe
from paper.experiments import setting_named
from paper.processes import BEGINS, PLATFORM, Task, Worker, cpu_environment
from paper.training import is_trained, plan_to_find
from paper.work import JUDGE, TRAIN, Chain, Tell, say_outcome
from paper.work_plan import FAILED, LATE, NOT_RUN, Outcome, Plan

DEVICE, CORES = "device", "cores"  # the two lanes
NO_MEMORY = "RESOURCE_EXHAUSTED"
END_SECONDS = 20.0  # to save and to end, besides the time of a chunk
JUDGE_SECONDS = 60.0  # an analysis that would begin later is left to the next time
LOOK_SECONDS = 1.0
COMPILE_SECONDS = 180.0  # in which a process may keep others from being started
LEAST_WORKERS = 4  # on a device that does not tell its memory
RUN_BYTES = 10 * 2**30  # of the device's memory for each run, on average
PATIENCE = 120.0  # with a process that was asked to end, or has told its outcomes; a hung one would hold all others


class Means(NamedTuple):
    """What the processes may use."""

    workers: int
    device: Device = CPU
    environment: dict[str, str] = {}  # noqa: RUF012 (never changed)
    deadline: float | None = None  # by time.monotonic()


class Show(NamedTuple):
    """What the user is told: lines, and the state of the queue once a second."""

    tell: Tell | None = None
    look: Callable[["Queue"], None] | None = None


class Queue:
    """Waiting tasks and processes at work."""

    def __init__(self, todo: Sequence[Chain], plan: Plan, means: Means, show: Show = Show()):
        self.plan, self.means, self.show = plan, means, show
        self.estimates = {chain: _estimate(chain, plan) for chain in todo if chain.role}
        split = means.device.accelerator and plan.train
        self.waiting = [Task(chain, _first_part(chain, plan) if split else "") for chain in self._ordered(todo)]
        self.running: list[Worker] = []
        self.outcomes: list[Outcome] = []
        self.needed: dict[Chain, int] = {}  # bytes on the device
        self.began, self.total = time.monotonic(), len(todo)

    def run(self) -> list[Outcome]:
        """Do all tasks; returns their outcomes. An interruption ends all processes, each with its state saved."""
        try:
            while self.waiting or self.running:
                self._watch_the_time()
                self._start_all()
                if not self.running:  # alone every task fits: the time is too short for those that wait
                    self._leave_waiting()
                wait([worker.connection for worker in self.running], timeout=LOOK_SECONDS)
                for worker in list(self.running):
                    self._attend(worker)
                if self.show.look:
                    self.show.look(self)
        except BaseException:
            self._end_all()
            raise
        return self.outcomes

    def _ordered(self, todo: Sequence[Chain]) -> list[Chain]:
        """Those that were begun first, then those of most value; among equals the longest first, so that all end at
        about the same time.
        """
        length = {chain: size.seconds for chain, size in self.estimates.items()}
        begun = {chain for chain in todo if _begun(chain, self.plan)}
        return sorted(todo, key=lambda chain: (chain not in begun, work.value(chain), -length.get(chain, 0.0)))

    # -- starting

    def _start_all(self) -> None:
        """Start what fits, in order."""
        for task in list(self.waiting):
            lane = self._lane(task)
            if lane is None:
                continue
            self.waiting.remove(task)
            memory = self.grant(task.chain) if lane == DEVICE and self.means.device.accelerator else 0
            worker = processes.start(task, self.plan, lane, self._environment(lane, memory), memory)
            self.running.append(worker)

    def _lane(self, task: Task) -> str | None:
        """Where a task may start now, if anywhere. Analyses take the device only if no run waits for it."""
        trains = task.part != JUDGE and bool(task.chain.role)
        if self._left() < (END_SECONDS if trains else JUDGE_SECONDS) or (trains and self._awaits_plan(task.chain)):
            return None
        device = self.means.device
        if not device.accelerator:
            return DEVICE if self._count(DEVICE) < self.means.workers else None
        free = self._count(DEVICE) < self.means.workers and self._fits(task.chain)
        if trains and free and sum(map(_compiles, self.running)) >= max(1, self.means.workers // 2):
            return None  # the cores are busy: those that compile are the sooner on the device
        runs_wait = any(other.part == TRAIN for other in self.waiting)
        if free and (trains or not runs_wait):
            return DEVICE
        return CORES if not trains and self._count(CORES) < self.spare_cores else None

    def _awaits_plan(self, chain: Chain) -> bool:
        """Whether a run at work is to find the schedules that this one needs, too."""
        path = _plan_to_find(chain, self.plan)
        if path is None or path.exists():
            return False
        return any(path == _plan_to_find(worker.task.chain, self.plan) for worker in self.running if _trains(worker))

    @property
    def spare_cores(self) -> int:
        """Processes on the CPU beside those that train: each of the latter keeps a core busy, and two at times."""
        return max(1, cores() - 3 * self._count(DEVICE) // 2)

    def grant(self, chain: Chain) -> int:
        """Bytes of the device for a run: its estimate, and at least half of an equal share. One alone may have all."""
        usable = int(self.means.device.memory * USED_FRACTION)
        if chain not in self.needed:
            self.needed[chain] = _memory(chain, self.plan)
        return min(usable, max(self.needed[chain], usable // (2 * self.means.workers)))

    def _fits(self, chain: Chain) -> bool:
        usable = int(self.means.device.memory * USED_FRACTION)
        taken = sum(worker.memory for worker in self.running)
        return taken + self.grant(chain) <= usable

    def _environment(self, lane: str, memory: int) -> dict[str, str]:
        device = self.means.device
        if not device.accelerator:
            return cpu_environment(self.plan.quick)
        if lane == CORES:
            return {**cpu_environment(self.plan.quick), "JAX_PLATFORMS": "cpu"}
        share = memory / device.memory if device.memory else DEFAULT_FRACTION
        return {**self.means.environment, **limited(share, at_once=True), PLATFORM: device.platform}

    def _count(self, lane: str) -> int:
        return sum(worker.lane == lane for worker in self.running)

    # -- ending

    def _attend(self, worker: Worker) -> None:
        """Take in what a process has told, and its end."""
        ended = worker.process.exitcode is not None  # before listening: what it told last is in the pipe
        for text in worker.listen():
            if self.show.tell:
                self.show.tell(text)
        if not ended:
            return
        self.running.remove(worker)
        worker.process.join()
        worker.connection.close()
        task, chain = worker.task, worker.task.chain
        if worker.progress and worker.progress.memory and self.means.device.accelerator:
            setting = setting_named(chain.setting)
            if method := setting.method(chain.role):
                observe(setting, method, self.plan, worker.progress.memory)
        if worker.outcomes is None and worker.ending:
            self._note([Outcome(_what(task), NOT_RUN, LATE)])
        elif worker.interrupted:
            raise KeyboardInterrupt
        elif self._may_try_again(worker):
            self.needed[chain] = 2 * worker.memory
            self.waiting.insert(0, task)
            if self.show.tell:
                self.show.tell(f"{chain}: out of memory or ended; it starts again with more memory")
        elif worker.outcomes is None:
            self._note([Outcome(str(chain), FAILED, f"its process ended with exit code {worker.process.exitcode}")])
        else:
            self._note(worker.outcomes)
            if task.part == TRAIN:
                self.waiting.append(Task(chain, JUDGE))

    def _may_try_again(self, worker: Worker) -> bool:
        """Whether a run on the device died or lacked memory, and may have more."""
        lacking = worker.outcomes is None or any(
            outcome.state == FAILED and NO_MEMORY in outcome.why for outcome in worker.outcomes
        )
        return lacking and 0 < worker.memory < int(self.means.device.memory * USED_FRACTION)

    def _note(self, outcomes: list[Outcome]) -> None:
        self.outcomes += outcomes
        for outcome in outcomes:
            say_outcome(outcome, self.show.tell)

    # -- time

    def _left(self) -> float:
        """Seconds until the limit."""
        return float("inf") if self.means.deadline is None else self.means.deadline - time.monotonic()

    def _watch_the_time(self) -> None:
        """When the time is nearly over, let runs save and end; at the limit, end what is left."""
        left = self._left()
        for worker in self.running:
            if left < (END_SECONDS + 2 * worker.longest if _trains(worker) else 2 * LOOK_SECONDS):
                worker.end()
            if left < 0 or (worker.over is not None and time.monotonic() - worker.over > PATIENCE):
                worker.process.kill()
        if left < END_SECONDS:
            self._leave_waiting()

    def _leave_waiting(self) -> None:
        """Leave what waits to the next time."""
        self._note([Outcome(_what(task), NOT_RUN, LATE) for task in self.waiting])
        self.waiting.clear()

    def _end_all(self) -> None:
        """Ask all processes to end, and wait until they have. One that does not even then is killed."""
        for worker in self.running:
            worker.end()
        began = time.monotonic()
        for worker in self.running:
            patience = min(max(PATIENCE, END_SECONDS + 2 * worker.longest), max(self._left(), 0.0))
            worker.process.join(max(began + patience - time.monotonic(), 0.0))
            if worker.process.exitcode is None:
                worker.process.kill()
                worker.process.join()

    def seconds_left(self) -> float:
        """Estimated time until all runs are trained, if none fails."""
        slots = [self._rest(worker) for worker in self.running if worker.task.part != JUDGE]
        slots += [0.0] * (self.means.workers - len(slots))
        for task in self.waiting:
            if task.part != JUDGE and (size := self.estimates.get(task.chain)):
                soonest = min(range(len(slots)), key=slots.__getitem__)
                slots[soonest] += size.seconds
        return max(slots)

    def _rest(self, worker: Worker) -> float:
        if worker.progress:
            return worker.progress.left
        size = self.estimates.get(worker.task.chain)
        return max(0.0, size.seconds - (time.monotonic() - worker.began)) if size else 0.0


def do_all(todo: Sequence[Chain], plan: Plan, means: Means | None = None, show: Show = Show()) -> list[Outcome]:
    """Run chains; with several workers, an accelerator or a limit of time, those with work in processes."""
    means = means or Means(workers=1)
    apart = means.workers > 1 or means.device.accelerator or means.deadline is not None
    heavy = [chain for chain in todo if work.has_work(chain, plan)] if apart else []
    light = [chain for chain in todo if chain not in heavy]
    outcomes = [outcome for chain in light for outcome in work.work(chain, plan, show.tell)]
    return outcomes + Queue(heavy, plan, means, show).run() if heavy else outcomes


def _estimate(chain: Chain, plan: Plan) -> Estimate:
    setting = setting_named(chain.setting)
    method = setting.method(chain.role)
    assert method is not None
    return estimate(setting, method, plan)


def _memory(chain: Chain, plan: Plan) -> int:
    setting = setting_named(chain.setting)
    method = setting.method(chain.role)
    return (memory_needed(setting, method, plan) or 0) if method else 0


def _plan_to_find(chain: Chain, plan: Plan) -> Path | None:
    return plan_to_find(chain.setting, chain.role, plan) if chain.role else None


def _first_part(chain: Chain, plan: Plan) -> str:
    """Training, and nothing of it for a method whose teams are there."""
    if not chain.role:
        return ""
    setting = setting_named(chain.setting)
    method = setting.method(chain.role)
    return JUDGE if method and is_trained(setting, method, plan) else TRAIN


def _begun(chain: Chain, plan: Plan) -> bool:
    """Whether a run was interrupted."""
    setting = setting_named(chain.setting)
    method = setting.method(chain.role)
    return method is not None and has_checkpoint(plan.out / plan.folder(setting, method))


def _compiles(worker: Worker) -> bool:
    """Whether a process that trains begins or compiles, which takes several cores."""
    early = worker.progress is None and time.monotonic() - worker.began < COMPILE_SECONDS
    return _trains(worker) and early and (worker.note == BEGINS or COMPILING in worker.note)


def _trains(worker: Worker) -> bool:
    return worker.task.part != JUDGE and bool(worker.task.chain.role)


def _what(task: Task) -> str:
    return f"{task.chain}/{task.part}" if task.part else str(task.chain)


def default_workers(device: Device) -> int:
    """Processes at once: one for each of two cores on a CPU; on an accelerator as many runs as its memory holds and as
    three quarters of the cores serve.

    A run keeps a core busy with starting its programs; the other cores compile and analyse. On an H200 with 16 cores
    eight runs did 21 iterations a second in all, and twelve 23 to 29.
    """
    if not device.accelerator:
        return min(2, os.cpu_count() or 1)
    return max(1, min(3 * cores() // 4, device.memory // RUN_BYTES if device.memory else LEAST_WORKERS))


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
