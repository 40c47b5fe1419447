"""A training run on the host: compile, advance in chunks, log, save checkpoints, and handle signals."""

import dataclasses
import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from icmape.compiling import SHORT, make_room, memory_of, on_cpu, use_compilation_cache
from icmape.errors import UserError
from icmape.io import clean_leftovers
from icmape.learning import train
from icmape.learning.advice import Watch
from icmape.learning.agreement import check_agreement
from icmape.learning.check_config import check
from icmape.learning.checkpoints import check_settings, has_checkpoint, keep, last_checkpoint
from icmape.learning.config import Config, split_sizes
from icmape.learning.interrupts import interruptible
from icmape.learning.phases import COMPILING, JUDGING, TRAINING, begin
from icmape.learning.plan import PlanFound
from icmape.learning.planning import find_plans, read_rounds, with_rounds
from icmape.learning.policies import Policies, check_policies
from icmape.learning.reports import faults_of, leaders, rows_of, tell_faults
from icmape.learning.run_files import RunFiles
from icmape.learning.run_folder import claim, held_files, write_config
from icmape.learning.shared_plans import for_plans, read_shared, write_shared
from icmape.learning.train import FAULTS, TrainState
from icmape.learning.validation import moves_stops
from icmape.locks import NAME as LOCK
from icmape.locks import check_free, only_writer
from icmape.networks import check_own_encoder
from icmape.play.devices import WORLDS, free, on_mesh, placed, training_mesh
from icmape.play.policy import Policy
from icmape.play.processes import agreed, is_first, part
from icmape.problem import Problem, check_problem, check_worlds

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
MOST_PROGRAMS = 4  # that are kept for later runs of the process
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
    devices: int | None = None,
    shared_plans: Path | None = None,
) -> Run:
    """Train all seeds from the start. Metrics and checkpoints are written to `folder`, if given.

    `policies` are the policies that the settings name: a teacher, a fixed policy. Without `settle`, an interrupted run
    only saves its state: its best teams are not judged on other worlds, as they are to change. The run is split over
    `devices` (default: all that JAX finds). Of several processes the first one writes. Plans are taken from the file
    `shared_plans`, or else written to it.
    """
    check_policies(config, policies)
    folder = folder if is_first() else None
    mesh = _mesh_of(config, devices)
    check_run(problem, config, folder, overwrite=overwrite)
    if folder is None:
        with on_mesh(mesh):
            check_agreement(problem, config, policies)
            return _from_start(problem, config, None, callback, policies, settle, shared_plans)
    with only_writer(folder), on_mesh(mesh):
        _check_folder(folder, overwrite)  # another process may have written before the folder was locked
        check_agreement(problem, config, policies)
        claim(folder)
        write_config(folder, problem, config)
        return _from_start(problem, config, folder, callback, policies, settle, shared_plans)


def _from_start(
    problem: Problem,
    config: Config,
    folder: Path | None,
    callback: Callback | None,
    policies: Policies,
    settle: bool,
    shared_plans: Path | None,
) -> Run:
    """Train plans, if the settings ask for them, then the teams."""
    began = time.monotonic()
    use_compilation_cache()
    make_room()
    plans = None
    if config.plan.iterations > 0:
        plans = read_shared(shared_plans, problem, config) if shared_plans else None
        if plans is None:
            plans = _find(problem, config, began, shared_plans)
        config = with_rounds(problem, config, [float(x) for x in plans.longest])
    states = train.start(problem, config.for_programs(), jnp.asarray(config.seeds, jnp.int32), plans, policies.frozen)
    return _loop(problem, config, states, 0, 0.0, folder, callback, began, policies, settle, plans)


def _find(problem: Problem, config: Config, began: float, shared_plans: Path | None) -> PlanFound:
    """Compute plans, and write them for other runs unless time was over before they were complete."""
    with interruptible("leaving the plan, which a resumed run finds again") as interrupted:
        plans = find_plans(problem, for_plans(config), interrupted, lambda: agreed(_late(config, began)))
        if shared_plans and is_first() and not _late(config, began):
            write_shared(shared_plans, problem, config, plans)
    if interrupted():
        raise KeyboardInterrupt
    return plans


def _mesh_of(config: Config, devices: int | None) -> Mesh | None:
    """The devices of the run. Work that cannot be split is done by all of them, which is told."""
    mesh = training_mesh(len(config.seeds), devices)
    worlds = 1 if mesh is None else mesh.shape[WORLDS]
    if (whole := [f"{name} ({size:,})" for name, size in split_sizes(config).items() if size % worlds]) and is_first():
        log.warning(
            "each seed has %d devices, and %s cannot be divided by that: each device does all of this work",
            worlds,
            " and ".join(whole),
        )
    return mesh


def check_run(problem: Problem, config: Config, folder: Path | None, *, overwrite: bool) -> None:
    """Raise `UserError` for what cannot work, before anything is written or compiled."""
    check_worlds(problem)
    check(config, problem)
    check_problem(problem)
    check_own_encoder(problem, config.network.encoder, config.network.hidden_size)
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
    devices: int | None = None,
    shared_plans: Path | None = None,
) -> Run:
    """Continue from the last checkpoint of a run, bit-identical on a CPU; from the start if there is none.

    Of several processes all read the folder, and the first one writes.
    """
    check(config, problem)
    check_policies(config, policies)
    mesh = _mesh_of(config, devices)
    with only_writer(folder) if is_first() else nullcontext(), on_mesh(mesh):
        return _from_checkpoint(problem, config, folder, callback, policies, settle, shared_plans)


def _from_checkpoint(
    problem: Problem,
    config: Config,
    folder: Path,
    callback: Callback | None,
    policies: Policies,
    settle: bool,
    shared_plans: Path | None,
) -> Run:
    if is_first():
        clean_leftovers(folder)
    began = time.monotonic()
    use_compilation_cache()
    checkpoint = last_checkpoint(folder) if has_checkpoint(folder) else None
    check_agreement(problem, config, policies, checkpoint)  # also waits until all processes have read it
    if checkpoint is None:
        return _from_start(problem, config, folder, callback, policies, settle, shared_plans)
    if is_first():
        keep(checkpoint)
    if config.plan.iterations > 0 and config.max_rounds is None:
        config = dataclasses.replace(config, max_rounds=read_rounds(folder))
    check_settings(checkpoint, problem, config)
    like = train.start.eval_shape(
        problem, config.for_programs(), jnp.asarray(config.seeds, jnp.int32), None, policies.frozen
    )
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
    states = placed(states)
    files = RunFiles(folder, problem, config, iteration, plans) if folder and is_first() else None
    teacher = policies.teacher
    if iteration < config.iterations:  # a finished run compiles nothing
        begin("compiling", "the training", COMPILING)
        with interruptible("stopping as soon as the program is compiled") as interrupted:
            step = _program(problem, config, states, teacher)
        if interrupted():
            raise KeyboardInterrupt
        memory = memory_of(step)
        until = f"the time left is known after {config.iterations_per_call}"
        begin(TRAINING, f"{config.iterations - iteration:,} iterations", until)
    began = saved = time.monotonic()
    before, steps_before = seconds, int(np.sum(np.asarray(states.environment_steps)))
    first, watch = iteration, Watch(config, plans)

    reported_faults = faults_of(config, states)
    with interruptible() as interrupted:
        while iteration < config.iterations and not interrupted():
            count = min(config.iterations_per_call, config.iterations - iteration)
            states, means = step(
                problem, config.for_programs(), states, jnp.int32(iteration), jnp.int32(count), teacher
            )
            iteration += count
            rows = rows_of(config, states, means, iteration)
            seconds = before + time.monotonic() - began
            reported_faults = tell_faults(config, states, reported_faults, iteration)
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
            if np.all(reported_faults > 0) or agreed(_late(config, started)):
                break
        if files:  # before `settle`, so that a resumed run is bit-identical
            files.finish(iteration, seconds, states, interrupted.here)  # other processes do not ask
        validated = moves_stops(config, states.best.policy) and np.any(np.asarray(states.best.iteration) > 0)
        if validated and (settle or not interrupted()):
            begin("judging", f"the best team, on {config.settling_episodes:,} other worlds", JUDGING)
            states = train.settle(problem, config.for_programs(), states)
    best_states = jax.tree.map(lambda x: x[leaders(config, states.best, states.fault)], states)
    return Run(problem, config, best_states, iteration, seconds, interrupted(), folder, watch.remarks)


def parted(run: Run) -> Run:
    """The run for what only the first process does after training: the other processes of the run may end now."""
    run = on_host(run)
    part()
    return run


def on_host(run: Run) -> Run:
    """The run with states that one process can read by itself."""
    return dataclasses.replace(run, states=free(run.states)) if jax.process_count() > 1 else run


def _program(problem: Problem, config: Config, states: TrainState, teacher: Policy | None) -> Any:
    """The compiled program of training. Runs that differ in traced values only, such as learning rates, share it."""
    options = on_cpu(SHORT) if config.iterations <= FEW else None
    inputs = (problem, config.for_programs(), states, jnp.int32(0), jnp.int32(1), teacher)
    leaves, structure = jax.tree.flatten(inputs)
    about = repr([getattr(jax.config, name, None) for name in sorted(jax.config.values)])  # precision and the like
    key = structure, tuple(map(jax.typeof, leaves)), options is None, jax.sharding.get_abstract_mesh(), about
    if key not in _PROGRAMS:
        while len(_PROGRAMS) >= MOST_PROGRAMS:
            _PROGRAMS.pop(next(iter(_PROGRAMS)))
        _PROGRAMS[key] = train.advance.lower(*inputs).compile(compiler_options=options)
    return _PROGRAMS[key]


_PROGRAMS: dict[Any, Any] = {}  # the last ones of this process


def _late(config: Config, began: float) -> bool:
    """Whether the time limit of the settings has passed."""
    return config.minutes is not None and time.monotonic() - began > 60 * config.minutes


def _tell(callback: Callback | None, report: Progress) -> None:
    """Call the callback; its exceptions are logged and do not end the run."""
    if callback is None:
        return
    try:
        callback(report)
    except Exception:
        log.exception("the callback failed at iteration %d; training goes on", report.iteration)
