"""Where workers run: processes of this machine, jobs of Slurm (by submitit), or tasks of a Ray cluster.

A worker is a Python command, such as `-m icmape.sweeps OUT`. It needs nothing but its folder, on a file system that all
workers share, and may be started again at any time: it goes on from what the folder holds.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from icmape.errors import UserError

log = logging.getLogger("icmape")

PLACES = ("local", "slurm", "ray")
LOOK_SECONDS = 0.5
RESTARTS = 3  # of a worker that was killed
PARENT = "ICMAPE_WORKER_PARENT"  # the process that a worker ends with
ON_DEMAND = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # else the first worker takes most of an accelerator's memory
VISIBLE = "CUDA_VISIBLE_DEVICES"
DEVICES = Path("/dev")
MINUTES = 24 * 60  # of a Slurm job unless given
Command = tuple[str, ...]


@runtime_checkable
class Workers(Protocol):
    """Workers that were started."""

    logs: str  # where they are

    def alive(self) -> int:
        """How many are at work or in a queue. Those that were killed may be started again here."""

    def stop(self) -> None:
        """Ask all to save their runs and to end."""

    def codes(self) -> list[int]:
        """The exit codes of workers that have ended; negative for those that were killed."""


def start(
    place: str, commands: Sequence[Command], folder: Path, parameters: Mapping[str, Any] | None = None
) -> Workers:
    """Start a worker for each command. Logs are written to the folder."""
    if place not in PLACES:
        raise UserError(f"--on is one of {', '.join(PLACES)}; given {place!r}")
    if place == "local":
        return Local(commands, folder)
    return (Submitted if place == "slurm" else RayTasks)(commands, folder, parameters or {})


def do(command: Command, folder: str, output: str | None = None) -> int:
    """Run a worker in this folder, and return its exit code. It is asked to end when this process is.

    One that is killed is started again, a few times: neither Ray nor submitit sees that, as this process goes on.
    """
    for _ in range(RESTARTS):
        code = _once(command, folder, output)
        if code >= 0 or code == -signal.SIGTERM:  # which somebody asked for
            return code
        log.warning("a worker was killed (exit code %d) and is started again", code)
    return _once(command, folder, output)


def _once(command: Command, folder: str, output: str | None) -> int:
    environment = os.environ | {PARENT: str(os.getpid())}
    with open(output, "ab") if output else nullcontext() as file:
        process = subprocess.Popen([sys.executable, *command], cwd=folder, env=environment, stdout=file, stderr=file)
    try:
        while True:
            try:
                return process.wait(timeout=LOOK_SECONDS)  # not longer: an interrupt is seen between two looks
            except subprocess.TimeoutExpired:
                continue
    except BaseException:
        process.terminate()
        process.wait()
        raise


def end_with_parent() -> None:
    """End this process by SIGTERM, so that it saves its run, when the task that started it (`do`) was killed."""
    parent = os.environ.get(PARENT)

    def watch() -> None:
        while str(os.getppid()) == parent:
            time.sleep(LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    if parent is not None:
        threading.Thread(target=watch, daemon=True).start()


def _one_device(number: int) -> dict[str, str]:
    """The NVIDIA device of a worker, if there are several: workers take turns.

    Each would split its runs over all of them, and programs that wait for each other on the same devices may do so for
    ever.
    """
    given = os.environ.get(VISIBLE)
    devices = [name for name in given.split(",") if name] if given is not None else _nvidia_devices()
    return {VISIBLE: devices[number % len(devices)]} if len(devices) > 1 else {}


def _nvidia_devices() -> list[str]:
    """The numbers of the devices of this machine."""
    return [str(number) for number in range(sum(path.name[6:].isdigit() for path in DEVICES.glob("nvidia*")))]


def _log(folder: Path, number: int) -> Path:
    return folder / f"worker-{number}.log"


class Local:
    """Processes of this machine."""

    def __init__(self, commands: Sequence[Command], folder: Path):
        self.commands, self.folder, self.restarts = commands, folder, RESTARTS * len(commands)
        self.logs = str(folder / "worker-*.log")
        self.processes = [self._start(number) for number in range(len(commands))]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        with open(_log(self.folder, number), "ab") as file:
            command = [sys.executable, *self.commands[number]]
            environment = dict(os.environ)
            if len(self.commands) > 1:
                environment = ON_DEMAND | environment | _one_device(number)
            return subprocess.Popen(command, env=environment, stdout=file, stderr=file, start_new_session=True)

    def alive(self) -> int:
        """Killed ones are started again, a few times."""
        for number, process in enumerate(self.processes):
            code = process.poll()
            if code is not None and code < 0 and self.restarts > 0:
                self.restarts -= 1
                log.warning(
                    "a worker was killed (exit code %d) and is started again: %s", code, _log(self.folder, number)
                )
                self.processes[number] = self._start(number)
        return sum(process.poll() is None for process in self.processes)

    def codes(self) -> list[int]:
        """Of the processes."""
        return [code for process in self.processes if (code := process.poll()) is not None]

    def stop(self) -> None:
        """By SIGTERM; they are waited for."""
        self.restarts = 0
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


class Submitted:
    """Jobs of Slurm. A job that is preempted, or whose time is over, is submitted again by submitit."""

    def __init__(
        self, commands: Sequence[Command], folder: Path, parameters: Mapping[str, Any], cluster: str = "slurm"
    ):
        try:
            import submitit
        except ImportError as error:
            raise UserError("--on slurm needs submitit: pip install 'icmape[slurm]'") from error
        self.logs = str(folder / "jobs")
        own = {name: value for name, value in parameters.items() if name in ("timeout_min", "cpus_per_task")}
        rest = {f"slurm_{name}": value for name, value in parameters.items() if name not in own}
        try:
            executor = submitit.AutoExecutor(folder=folder / "jobs", cluster=cluster)
            executor.update_parameters(name="icmape", **{"timeout_min": MINUTES, **own, **rest})
        except (NameError, TypeError, RuntimeError) as error:
            raise UserError(f"--on slurm: {error}") from error
        with executor.batch():
            self.jobs = [executor.submit(Job(command, os.getcwd())) for command in commands]

    def alive(self) -> int:
        """Jobs that wait or run."""
        return sum(not job.done() for job in self.jobs)

    def codes(self) -> list[int]:
        """Of the jobs; a job that did not come to its end counts as killed."""
        ended = [job for job in self.jobs if job.done()]
        return [job.result() if job.exception() is None else -1 for job in ended]

    def stop(self) -> None:
        """Cancel all; they are waited for."""
        for job in self.jobs:
            job.cancel(check=False)
        while self.alive():
            time.sleep(0.2)


class Job:
    """What a job of Slurm calls."""

    def __init__(self, command: Command, folder: str):
        self.command, self.folder = command, folder

    def __call__(self) -> int:
        """Run the worker."""
        return do(self.command, self.folder)

    def checkpoint(self, *_: Any) -> Any:
        """Submit the same again."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)


class RayTasks:
    """Tasks of a Ray cluster, or of a Ray on this machine where there is none.

    Ray starts a task again whose process or machine died; `do` starts a worker again that was killed below it.
    """

    def __init__(self, commands: Sequence[Command], folder: Path, parameters: Mapping[str, Any]):
        try:
            import ray
        except ImportError as error:
            raise UserError("--on ray needs Ray: pip install 'icmape[ray]'") from error
        self.ray, self.logs = ray, str(folder / "worker-*.log")
        if not ray.is_initialized():
            try:
                ray.init(address="auto", log_to_driver=False)
            except ConnectionError:
                cores = int(parameters.get("num_cpus", 1) * len(commands))
                ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False)
        options: dict[str, Any] = {"max_retries": RESTARTS, **parameters}
        task: Any = ray.remote(**options)(do)
        logs = [str(_log(folder.resolve(), number)) for number in range(len(commands))]
        self.tasks = [task.remote(command, os.getcwd(), file) for command, file in zip(commands, logs, strict=True)]

    def alive(self) -> int:
        """Tasks that wait or run."""
        return len(self.ray.wait(self.tasks, num_returns=len(self.tasks), timeout=0)[1])

    def codes(self) -> list[int]:
        """Of the tasks; a task that did not come to its end counts as killed."""
        return [self._code(task) for task in self.ray.wait(self.tasks, num_returns=len(self.tasks), timeout=0)[0]]

    def _code(self, task: Any) -> int:
        try:
            return int(self.ray.get(task))
        except self.ray.exceptions.RayError:
            return -1

    def stop(self) -> None:
        """Interrupt all."""
        for task in self.tasks:
            self.ray.cancel(task)
        self.ray.wait(self.tasks, num_returns=len(self.tasks), timeout=60)


def parameters_of(words: Sequence[str], place: str) -> dict[str, Any]:
    """The parameters of jobs from NAME=VALUE, as numbers where they are numbers."""
    parameters: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise UserError(f"--{place} takes NAME=VALUE; given {word!r}")
        parameters[name] = _number(value)
    return parameters


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
