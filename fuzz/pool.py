"""Workers, and what is made of their silence."""

import json
import math
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from fuzz.cases import Outcome

ROOT = Path(__file__).resolve().parents[1]
LONGEST_CASE = 30.0
"""Seconds of the processor that an input may take; other work on the machine does not count."""
LONGEST_WAIT = 300.0
"""Seconds that pass while one is tried."""
LONGEST_START = 900.0
"""Seconds in which a worker starts and prepares a target."""


class Job(NamedTuple):
    """An input by its target and number."""

    target: str
    number: int

    def __str__(self) -> str:
        return f"{self.target}:{self.number}"


class Worker:
    """A process that tries one input after another."""

    def __init__(self, seed: int, command: Sequence[str] = ("-m", "fuzz.worker")):
        self.mutations: dict[str, list[str]] = {}
        self.read = b""  # of its answers, and not yet used: two lines may come at once
        self.scratch = tempfile.mkdtemp(prefix="icmape-fuzz-")
        environment = {"JAX_PLATFORMS": "cpu", **os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, *command, str(seed), self.scratch],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=ROOT,
        )

    def attempt(self, job: Job) -> Outcome | None:
        """What came of an input; None if the worker died before the target was prepared."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(job._asdict()).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        if job.target not in self.mutations:
            line = self._line(LONGEST_START)
            if line is None:
                return None
            self.mutations[job.target] = json.loads(line)["mutations"]
        mutations = self.mutations[job.target]
        return self._outcome(mutations[job.number % len(mutations)])

    def _outcome(self, mutation: str) -> Outcome:
        line = self._line(LONGEST_WAIT, LONGEST_CASE)
        if line is not None:
            return Outcome(**json.loads(line))
        if self.process.poll() is None:
            self.end()
            return Outcome("hang", mutation, f"no answer after {LONGEST_CASE:g} s of computing, or {LONGEST_WAIT:g} s")
        return Outcome("traceback", mutation, f"the process ended with {self.process.wait()}")

    def _line(self, seconds: float, computing: float = math.inf) -> bytes | None:
        """A line of the worker; None if none comes in time, or it has ended."""
        assert self.process.stdout is not None
        until, used = time.monotonic() + seconds, self._computed()
        while time.monotonic() < until and self._computed() - used < computing:
            if b"\n" in self.read:
                line, _, self.read = self.read.partition(b"\n")
                return line
            if select.select([self.process.stdout], [], [], 0.2)[0]:
                piece = os.read(self.process.stdout.fileno(), 2**16)
                if not piece:
                    self.process.wait()
                    return None
                self.read += piece
        return None

    def _computed(self) -> float:
        """Seconds of the processor that the worker has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.scratch, ignore_errors=True)


def run_all(
    jobs: Iterable[Job], seed: int, workers: int, deadline: float, tell: Callable[[Job, Outcome], None]
) -> None:
    """Try all inputs in several processes, as long as there is time."""
    queue = iter(jobs)  # taken from under the lock of the interpreter: `next` of a list's iterator is atomic

    def work() -> None:
        worker = Worker(seed)
        try:
            for job in queue:
                if time.monotonic() > deadline:
                    return
                outcome = worker.attempt(job)
                if outcome is None:
                    raise RuntimeError(f"the target {job.target} cannot be prepared: python -m fuzz --case {job}")
                tell(job, outcome)
                if worker.process.poll() is not None:
                    worker.end()
                    worker = Worker(seed)
        finally:
            worker.end()

    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(work) for _ in range(workers)]:
            future.result()
