"""A process that runs a chain, or a part of it, and tells how it gets on."""

import logging
import multiprocessing
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import jax

from icmape.compiling import use_compilation_cache
from icmape.learning.interrupts import preempted_by_signal
from icmape.learning.run import Progress
from paper import work
from paper.work import Chain
from paper.work_plan import Outcome, Plan

ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
COMPILE_FAST = "--xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true"  # for runs of a minute
INTERRUPTED = "interrupted"
BEGINS = "begins"  # a process that has not told anything
PLATFORM = "ICMAPE_PLATFORM"  # that the device of a process must have


class Note(NamedTuple):
    """What a process is doing."""

    text: str


class Task(NamedTuple):
    """A chain, or a part of it, for one process."""

    chain: Chain
    part: str = ""  # work.TRAIN or work.JUDGE; empty: all


@dataclass
class Worker:
    """A process at work, and what it has told."""

    task: Task
    lane: str
    process: BaseProcess
    connection: Connection
    memory: int = 0  # bytes of the device that are set aside for it
    began: float = field(default_factory=time.monotonic)
    progress: Progress | None = None
    longest: float = 0.0  # seconds between two reports
    told: float = field(default_factory=time.monotonic)
    note: str = BEGINS
    outcomes: list[Outcome] | None = None
    over: float | None = None  # when it told them
    interrupted: bool = False
    ending: bool = False  # it was asked to end

    def listen(self) -> list[str]:
        """Take in all messages; returns texts for the user."""
        texts = []
        with suppress(EOFError, OSError):
            while self.connection.poll():
                message = self.connection.recv()
                if isinstance(message, Progress):
                    if self.progress is not None:
                        self.longest = max(self.longest, time.monotonic() - self.told)
                    self.progress, self.told = message, time.monotonic()
                elif isinstance(message, Note):
                    self.note = message.text
                elif message == INTERRUPTED:
                    self.interrupted = True
                elif isinstance(message, str):
                    texts.append(message)
                else:
                    self.outcomes, self.over = message, time.monotonic()
        return texts

    def end(self) -> None:
        """Ask it to end, once. One that trains saves its state first."""
        if not self.ending:
            self.process.terminate()
            self.ending = True


def start(task: Task, plan: Plan, lane: str, environment: Mapping[str, str], memory: int = 0) -> Worker:
    """Start a process for a task with changed variables of the environment."""
    context = multiprocessing.get_context("spawn")  # a forked process with threads may hang
    receiving, sending = context.Pipe(duplex=False)
    arguments = (work.work, task, plan, sending, os.getpid())
    process = context.Process(target=_run, args=arguments, name=str(task.chain))
    with _changed(environment):  # JAX reads it when it is imported
        process.start()
    sending.close()
    return Worker(task, lane, process, receiving, memory)


def cpu_environment(quick: bool) -> dict[str, str]:
    """The environment of a process on a CPU: one thread for each, so that they do not share cores."""
    flags = (os.environ.get("XLA_FLAGS"), ONE_THREAD, COMPILE_FAST if quick else None)
    return {"XLA_FLAGS": " ".join(filter(None, flags))}


@contextmanager
def _changed(environment: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                del os.environ[name]
            else:
                os.environ[name] = old


def _run(do: Any, task: Task, plan: Plan, sending: Connection, parent: int) -> None:
    """In the process: do the task, and send progress, messages and outcomes."""
    _follow(parent)
    preempted_by_signal()
    use_compilation_cache()
    # chains share many small programs
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    tell = Outbox(sending)
    handler = _Messages(f"{task.chain}: ", tell)
    log = logging.getLogger("icmape")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    wanted = os.environ.get(PLATFORM)
    if wanted and jax.default_backend() != wanted:  # JAX takes the CPU without a word, which would need days
        tell(f"{task.chain}: its process finds no {wanted}")
        sys.exit(1)
    try:
        tell(do(task.chain, plan, part=task.part, callback=tell))
    except KeyboardInterrupt:
        tell(INTERRUPTED)


class Outbox:
    """Sends messages, one after the other.

    A signal may interrupt a message and send one itself, which then waits for the first: a lock would wait for ever.
    """

    def __init__(self, connection: Connection):
        self.connection = connection
        self._waiting: deque[Any] = deque()
        self._sending = threading.Lock()

    def __call__(self, message: Any) -> None:
        """Send a message, or leave it to whoever is sending."""
        self._waiting.append(message)
        while self._waiting and self._sending.acquire(blocking=False):
            try:
                while self._waiting:
                    with suppress(OSError):  # nobody listens any more
                        self.connection.send(self._waiting.popleft())
            finally:
                self._sending.release()


class _Messages(logging.Handler):
    """Sends warnings as texts for the user, and what is less as notes."""

    def __init__(self, name: str, tell: Any):
        super().__init__(logging.INFO)
        self.prefix, self.tell = name, tell

    def emit(self, record: logging.LogRecord) -> None:
        """One message."""
        text = record.getMessage()
        self.tell(self.prefix + text if record.levelno >= logging.WARNING else Note(text))


def _follow(parent: int) -> None:
    """End this process when its parent has ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
