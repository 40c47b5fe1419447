"""A training run on the host: compile, advance in chunks, log, save checkpoints, and handle signals."""

import dataclasses
import json
import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from icmape.compiling import SHORT, make_room, memory_of, on_cpu, use_compilation_cache
from icmape.errors import UserError
from icmape.io import clean_leftovers, write_atomically
from icmape.json_text import parse
from icmape.learning import train
from icmape.learning.advice import advice
from icmape.learning.check_config import check
from icmape.learning.checkpoints import NEWEST, PREVIOUS, check_settings, has_checkpoint, last_checkpoint, settings_of
from icmape.learning.config import Config
from icmape.learning.plan import PlanFound
from icmape.learning.planning import find_plans, read_rounds, with_rounds
from icmape.learning.policies import Policies, check_policies
from icmape.learning.run_files import RunFiles
from icmape.learning.train import FAULTS, TrainState
from icmape.learning.validation import Best, rank
from icmape.locks import NAME as LOCK
from icmape.locks import check_free, only_writer
from icmape.problem import Problem, check_problem, check_worlds
from icmape.problem.spec import full_kind
from icmape.settings import override
from icmape.version import __version__

log = logging.getLogger("icmape")


class Progress(NamedTuple):
    """The report to a display or a tracker after every chunk."""

    iteration: int
    iterations: int
    seconds: float  # of training, without compilation
    left: float  # estimated remaining seconds
    steps_per_second: float  # rounds of all worlds and seeds
    rows: list[dict[str, Any]]  # one per seed
    memory: int | None = None  # bytes that the program takes on the device, if known


Callback = Callable[[Progress], None]
FEW = 500  # iterations up to which a program for a CPU is compiled with fewer optimizations


@dataclass
class Run:
    """A finished or interrupted run."""

    problem: Problem
    config: Config
    states: TrainState  # leading seed axis
    iteration: int
    seconds: float
    interrupted: bool
    folder: Path | None
    remarks: dict[int, list[str]] = field(default_factory=dict)  # by seed: advice if it did not learn

    @property
    def finished(self) -> bool:
        """Whether all iterations are done."""
        return self.iteration >= self.config.iterations

    def faults(self) -> dict[int, str]:
        """Failed seeds, and the quantity that was not finite."""
        codes = np.asarray(self.states.fault)
        return {seed: FAULTS[code] for seed, code in zip(self.config.seeds, codes, strict=True) if code}

    @property
    def exit_code(self) -> int:
        """Exit code of commands: 1 if every seed failed, 130 if interrupted."""
        return 1 if len(self.faults()) == len(self.config.seeds) else 130 if self.interrupted else 0

    def state(self, index: int) -> TrainState:
        """The state of one seed."""
        return jax.tree.map(lambda x: x[index], self.states)


def train_run(
    problem: Problem,
    config: Config,
    folder: Path | None = None,
    *,
    overwrite: bool = False,
    callback: Callback | None = None,
    policies: Policies = Policies(),
    settle: bool = True,
) -> Run:
    """Train all seeds from the start. Metrics and checkpoints are written to `folder`, if given.

    `policies` are the policies that the settings name: a teacher, a fixed policy. Without `settle`, an interrupted run
    only saves its state: its best teams are not judged on other worlds, as they are to change.
    """
    check_policies(config, policies)
    check_run(problem, config, folder, overwrite=overwrite)
    if folder is None:
        return _from_start(problem, config, None, callback, policies, settle)
    with only_writer(folder):
        _check_folder(folder, overwrite)  # another process may have written before the folder was locked
        _claim(folder)
        write_config(folder, problem, config)
        return _from_start(problem, config, folder, callback, policies, settle)


def _from_start(
    problem: Problem, config: Config, folder: Path | None, callback: Callback | None, policies: Policies, settle: bool
) -> Run:
    """Train plans, if the settings ask for them, then the teams."""
    began = time.monotonic()
    use_compilation_cache()
    make_room()
    plans = None
    if config.plan.iterations > 0:
        with interruptible("leaving the plan, which a resumed run finds again") as interrupted:
            plans = find_plans(problem, config, log.info, interrupted, lambda: _late(config, began))
            config = with_rounds(problem, config, [float(x) for x in plans.longest])
        if interrupted():
            raise KeyboardInterrupt
    states = train.start(problem, config, jnp.asarray(config.seeds, jnp.int32), plans, policies.frozen)
    return _loop(problem, config, states, 0, 0.0, folder, callback, began, policies, settle, plans)


def check_run(problem: Problem, config: Config, folder: Path | None, *, overwrite: bool) -> None:
    """Raise `UserError` for what cannot work, before anything is written or compiled."""
    check_worlds(problem)
    check(config, problem)
    check_problem(problem)
    if folder is not None and folder.exists():
        _check_folder(folder, overwrite)


def _check_folder(folder: Path, overwrite: bool) -> None:
    if not folder.is_dir():
        raise UserError(f"{folder} is a file; --out needs a folder")
    check_free(folder)
    if held_files(folder) and not overwrite:
        raise UserError(
            f"{folder} already holds a run: continue it with `icmape resume {folder}`, choose another --out, "
            "or replace it with --overwrite"
        )
    clean_leftovers(folder)
    if not overwrite and any(path.name != LOCK for path in folder.iterdir()):
        raise UserError(f"{folder} is not empty and holds no run: choose another --out")


def resume_run(
    problem: Problem,
    config: Config,
    folder: Path,
    *,
    callback: Callback | None = None,
    policies: Policies = Policies(),
    settle: bool = True,
) -> Run:
    """Continue from the last checkpoint of a run, bit-identical on a CPU; from the start if there is none."""
    check(config, problem)
    check_policies(config, policies)
    with only_writer(folder):
        return _from_checkpoint(problem, config, folder, callback, policies, settle)


def _from_checkpoint(
    problem: Problem, config: Config, folder: Path, callback: Callback | None, policies: Policies, settle: bool
) -> Run:
    clean_leftovers(folder)
    began = time.monotonic()
    use_compilation_cache()
    if not has_checkpoint(folder):
        return _from_start(problem, config, folder, callback, policies, settle)
    checkpoint = last_checkpoint(folder)
    if config.plan.iterations > 0 and config.max_rounds is None:
        config = dataclasses.replace(config, max_rounds=read_rounds(folder))
    check_settings(checkpoint, problem, config)
    like = train.start.eval_shape(problem, config, jnp.asarray(config.seeds, jnp.int32), None, policies.frozen)
    begun = checkpoint.header["iteration"], checkpoint.header["seconds"]
    return _loop(problem, config, checkpoint.states(like), *begun, folder, callback, began, policies, settle)


def _loop(
    problem: Problem,
    config: Config,
    states: TrainState,
    iteration: int,
    seconds: float,
    folder: Path | None,
    callback: Callback | None,
    started: float,
    policies: Policies,
    settle: bool,
    plans: PlanFound | None = None,
) -> Run:
    files = RunFiles(folder, problem, config, iteration, plans) if folder else None
    teacher = policies.teacher
    if iteration < config.iterations:  # a finished run compiles nothing
        options = on_cpu(SHORT) if config.iterations <= FEW else None
        lowered = train.advance.lower(problem, config, states, jnp.int32(0), jnp.int32(1), teacher)
        step = lowered.compile(compiler_options=options)
        memory = memory_of(step)
    began = saved = time.monotonic()
    before, steps_before = seconds, int(np.sum(np.asarray(states.environment_steps)))
    first, watch = iteration, Watch(config, plans)

    reported_faults = _faults(config, states)
    with interruptible() as interrupted:
        while iteration < config.iterations and not interrupted():
            count = min(config.iterations_per_call, config.iterations - iteration)
            states, means = step(problem, config, states, jnp.int32(iteration), jnp.int32(count), teacher)
            iteration += count
            rows = _rows(config, states, means, iteration)
            seconds = before + time.monotonic() - began
            reported_faults = _tell_faults(config, states, reported_faults, iteration)
            pace = (seconds - before) / (iteration - first)
            steps = int(np.sum(np.asarray(states.environment_steps))) - steps_before
            for row in rows:
                row["seconds"] = round(seconds, 3)
            if files:
                files.write(rows)
            watch.look(rows)
            left = pace * (config.iterations - iteration)
            rate = steps / max(seconds - before, 1e-9)
            _tell(callback, Progress(iteration, config.iterations, seconds, left, rate, rows, memory))
            if files and time.monotonic() - saved > 60 * config.checkpoint_minutes:
                files.save(iteration, seconds, states)
                saved = time.monotonic()
            if np.all(reported_faults > 0) or _late(config, started):
                break
        if files:  # before `settle`, so that a resumed run is bit-identical
            files.finish(iteration, seconds, states, interrupted)
        if settle or not interrupted():
            states = train.settle(problem, config, states)
    best_states = jax.tree.map(lambda x: x[leaders(config, states.best, states.fault)], states)
    return Run(problem, config, best_states, iteration, seconds, interrupted(), folder, watch.remarks)


def _late(config: Config, began: float) -> bool:
    """Whether the time limit of the settings has passed."""
    return config.minutes is not None and time.monotonic() - began > 60 * config.minutes


class Watch:
    """Checks every report for signs that a seed does not learn, and logs each remark once."""

    def __init__(self, config: Config, plans: PlanFound | None):
        self.config = config
        lengths = [] if plans is None else np.asarray(plans.length).tolist()
        self.plan_tau = {seed: length + 1.0 for seed, length in zip(config.seeds, lengths, strict=False)}
        self.remarks: dict[int, list[str]] = {}

    def look(self, rows: list[dict[str, Any]]) -> None:
        """Store the current remarks, and log new ones."""
        for row in rows:
            seed = row["seed"]
            remarks = advice(self.config, row, self.plan_tau.get(seed))
            logged = {remark.partition(":")[2] for remark in self.remarks.get(seed, [])}
            for remark in remarks:
                if remark.partition(":")[2] not in logged:
                    log.warning("seed %d, iteration %d: %s", seed, row["iteration"], remark)
            self.remarks[seed] = remarks


def _tell(callback: Callback | None, report: Progress) -> None:
    """Call the callback; its exceptions are logged and do not end the run."""
    if callback is None:
        return
    try:
        callback(report)
    except Exception:
        log.exception("the callback failed at iteration %d; training goes on", report.iteration)


def leaders(config: Config, best: Best, faults: Int[Array, "members"]) -> np.ndarray:
    """The index of the best member of each seed by validation: without fault, on target and fastest, or else the most
    accurate."""
    accuracy, tau, fault = (np.asarray(x) for x in (best.accuracy, best.tau, faults))

    def rank_member(index: int) -> tuple[bool, bool, float]:
        return bool(fault[index]), *rank(float(accuracy[index]), float(tau[index]), config.delta)

    groups = np.arange(len(accuracy)).reshape(len(config.seeds), config.population_size)
    return np.array([min(group.tolist(), key=rank_member) for group in groups])


def _rows(config: Config, states: TrainState, means: dict[str, Any], iteration: int) -> list[dict[str, Any]]:
    """Metrics of the best member of each seed as plain numbers; None if not finite, as JSON has no NaN."""
    columns = {**means, **{f"validation_{k}": v for k, v in states.validation.items()}}
    columns |= {"best_accuracy": states.best.accuracy, "best_tau": states.best.tau}
    columns["environment_steps"] = states.environment_steps
    host = {name: np.asarray(values) for name, values in columns.items()}
    rows = []
    for index, seed in zip(leaders(config, states.best, states.fault), config.seeds, strict=True):
        row: dict[str, Any] = {"seed": seed, "iteration": iteration}
        if config.population_size > 1:
            row["member"] = int(index) % config.population_size
        for name, values in host.items():
            value = values[index].item()
            row[name] = value if np.isfinite(value) else None
        rows.append(row)
    return rows


def _faults(config: Config, states: TrainState) -> np.ndarray:
    """The fault of each seed: 0 while one of its members has none."""
    return np.asarray(states.fault).reshape(-1, config.population_size).min(axis=1)


def _tell_faults(config: Config, states: TrainState, reported: np.ndarray, iteration: int) -> np.ndarray:
    codes = _faults(config, states)
    for seed, code, before in zip(config.seeds, codes, reported, strict=True):
        if code and not before:
            log.error(
                "seed %d stopped: %s is not finite by iteration %d; its state from before is kept, other seeds go on",
                seed,
                FAULTS[code],
                iteration,
            )
    return codes


@contextmanager
def interruptible(message: str = "saving after this chunk") -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM end the loop after the current chunk; a second Ctrl-C interrupts at once."""
    requested = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        if requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        requested = True
        log.warning("%s: %s", signal.Signals(number).name, message)

    try:
        old = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # signals can only be handled in the main thread
        yield lambda: False
        return
    try:
        yield lambda: requested
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def held_files(folder: Path) -> list[Path]:
    """The files of a run in a folder."""
    named = [folder / name for name in ("config.json", "plan.json", "metrics.jsonl", NEWEST, PREVIOUS)]
    teams = (path for where in ("", "delta-*/") for path in sorted(folder.glob(f"{where}team-*.safetensors")))
    return [path for path in (*named, *teams) if path.exists()]


def _claim(folder: Path) -> None:
    """Create the folder, and delete the files of an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in held_files(folder):
        if path.name != "config.json":  # it is replaced, atomically
            path.unlink()


def write_config(folder: Path, problem: Problem, config: Config) -> None:
    """Write the problem and the settings, which repeat the run."""
    content = {"icmape": __version__, **settings_of(problem, config)}
    write_atomically(folder / "config.json", json.dumps(content, indent=2).encode() + b"\n")


def read_config(path: Path) -> tuple[str, dict[str, Any], Config]:
    """Kind and arguments of the problem, as `spec.build_named` takes them, and the settings."""
    try:
        content = parse(path.read_bytes())
        problem, learning = content["problem"], content["learning"]
        for part in (problem, problem["arguments"], learning):
            if not isinstance(part, dict):
                raise ValueError(f"given {str(part)[:60]!r} where names and values belong")
        if unknown := set(content) - {"icmape", "problem", "learning"}:
            raise ValueError(f"unknown part {min(unknown)[:60]!r}")
        if not isinstance(problem["kind"], str):
            raise ValueError(f"the kind of the problem is no name: {str(problem['kind'])[:60]!r}")
        if "kind" not in learning.get("algorithm", {"kind": ""}):
            raise UserError(f'{path}: "algorithm" does not say its kind (files of version 0.1 mean "kind": "td3")')
        return full_kind(problem), problem["arguments"], override(Config(), learning)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f'{path} is not a configuration: expected JSON with "problem" and "learning" ({error})'
        ) from error
