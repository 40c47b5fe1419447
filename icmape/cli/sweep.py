"""`icmape sweep`."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from icmape.errors import UserError
from icmape.imports import named_by_flag, named_code
from icmape.learning.interrupts import ended_by_signals
from icmape.locks import locked
from icmape.play.devices import leave_to_workers
from icmape.plot.terminal import say
from icmape.sweeps import places
from icmape.sweeps.pull import forget_failures, states, worker_command, write_plan
from icmape.sweeps.runs import build
from icmape.sweeps.spec import Run, read_spec
from icmape.sweeps.table import summary, write_table

LOOK_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Train and evaluate many runs: seeds, settings and problems from a TOML file, on this machine or on a cluster.

    The same command continues a sweep that was interrupted. Results: OUT/table.md and OUT/table.csv.
    """

    spec: tyro.conf.Positional[Path]
    """TOML file of the sweep."""
    out: Path | None = None
    """Folder of the sweep, on a file system that all workers share; by default runs/NAME of the file."""
    on: Literal["local", "slurm", "ray"] = "local"
    """Where workers run: processes of this machine, jobs of Slurm, or tasks of Ray."""
    workers: int = 2
    """Number of workers. Each does one run at a time."""
    slurm: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")] = ()
    """Parameters of the jobs, such as partition=gpu timeout_min=120 gpus_per_node=1."""
    ray: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE ...")] = ()
    """Resources of a worker, such as num_cpus=4 num_gpus=1."""
    problem: tuple[str, ...] = ()
    """module:Class of problems that the file names: their code is imported only if it is named here."""
    encoder: Annotated[tuple[str, ...], tyro.conf.arg(name="network.encoder")] = ()
    """The same for encoders."""
    teacher: Annotated[tuple[str, ...], tyro.conf.arg(name="teacher.policy")] = ()
    """The same for teachers."""
    list: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Only list the runs, and check their settings."""


def sweep_command(arguments: list[str]) -> int:
    """Run a sweep."""
    args = tyro.cli(SweepOptions, prog="icmape sweep", args=arguments)
    runs = read_spec(args.spec)
    if args.workers < 1:
        raise UserError(f"a sweep needs at least one worker; given {args.workers}")
    parameters = _parameters(args)
    leave_to_workers()
    for run in runs:  # an error now costs no hour later
        try:
            build(run, named_code(arguments))
        except UserError as error:
            raise UserError(f"{args.spec}, run {run.name}: {error}") from error
    if args.list:
        for run in runs:
            say(run.name)
        say(f"{len(runs)} runs")
        return 0
    out = args.out or Path("runs") / args.spec.stem
    out.mkdir(parents=True, exist_ok=True)
    with locked(out / ".leader", str(out), required=True), ended_by_signals():
        write_plan(out, runs)
        forget_failures(out, runs)
        command = worker_command(out.resolve(), named_by_flag(arguments))
        return _lead(out, runs, args, command, parameters)


def _lead(out: Path, runs: list[Run], args: SweepOptions, command: places.Command, parameters: dict[str, Any]) -> int:
    counts = states(out, runs)
    if counts["done"] < len(runs):
        workers = places.start(args.on, [command] * min(args.workers, len(runs)), out, parameters)
        told = ""
        try:
            while (alive := workers.alive()) > 0:
                counts = states(out, runs)
                if (line := summary(counts, alive)) != told:
                    say(line)
                    told = line
                time.sleep(LOOK_SECONDS)
        except BaseException:
            logging.getLogger("icmape").warning("ending: runs save their states; the same command goes on from there")
            workers.stop()
            raise
        if bad := [code for code in workers.codes() if code != 0]:
            ended = "1 worker" if len(bad) == 1 else f"{len(bad)} workers"
            say(f"{ended} ended early (exit codes {', '.join(map(str, bad))}); logs: {workers.logs}")
    counts = states(out, runs)
    path = write_table(out, runs)
    for name, why in counts["failed"].items():
        say(f"{name} failed: {why}")
    say(f"{summary(counts, 0).partition(';')[0]}: {path}")
    left = len(runs) - counts["done"]
    if left > len(counts["failed"]):
        say(f"{left - len(counts['failed'])} runs were not ended: the same command goes on with them")
    return 1 if left else 0


def _parameters(args: SweepOptions) -> dict[str, Any]:
    """The values of --slurm or --ray."""
    given = {"slurm": args.slurm, "ray": args.ray, "local": ()}
    if other := [place for place in ("slurm", "ray") if place != args.on and given[place]]:
        raise UserError(f"--{other[0]} belongs to --on {other[0]}; given --on {args.on}")
    return places.parameters_of(given[args.on], args.on)
