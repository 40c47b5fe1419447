"""`icmape reproduce`, also `python -m paper`, which needs no package for command lines."""

import argparse
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from icmape.errors import UserError
from icmape.learning.interrupts import ended_by_signals
from icmape.play.devices import leave_to_workers
from icmape.plot.terminal import say
from icmape.sweeps.places import PLACES
from icmape.zoo.hotspot.hotspot import DATA
from paper import work
from paper.board import board
from paper.collected import Results
from paper.device import CPU, expects_accelerator, find_device, shared
from paper.experiments import SETTINGS, setting_named
from paper.leading import WORK_LEFT, lead
from paper.listing import list_work
from paper.pages import write_pages
from paper.parcel import MIB, MOST_MIB, pack, unpack
from paper.queue import Means, Show, default_workers, do_all
from paper.work import Chain, chains, part_of
from paper.work_plan import FAILED, LATE, NOT_RUN, Outcome, Plan

RESULTS = Path("results")
WHOLE = "1/1"
FULL, QUICK = Path("runs/reproduce"), Path("runs/reproduce-quick")
PACK_SECONDS = 30.0  # of the time limit

ABOUT = """Compute missing results of the paper, then write all tables, figures and one page.
Stored results and teams are used. Each new result has its own file, so an interrupted command can be repeated.
Training at full size needs --train and an accelerator, on which several runs train side by side."""


def reproduce_command(arguments: list[str]) -> int:
    """Every table and figure of the paper."""
    began = time.monotonic()
    leave_to_workers()
    args = _parser().parse_args(arguments)
    chosen = [setting_named(name) for name in args.settings or SETTINGS]
    plan = _plan(args)
    if args.on:
        with ended_by_signals():
            return lead(args, arguments, plan.out)
    todo = part_of(chains(chosen, plan, args.methods), args.part)
    if args.unpack:
        count, remarks = unpack(args.unpack, plan.out)
        for remark in (f"{count} files from {args.unpack} in {plan.out}", *remarks):
            say(remark)
    if args.list:
        return list_work(todo, replace(plan, dry=True))
    outcomes: list[Outcome] = []
    try:
        with ended_by_signals():
            outcomes = _work(todo, plan, args, began)
    finally:  # after an interruption too, as every run has saved its state
        if args.pack:
            _pack(plan, args)
    late = any(outcome.why == LATE for outcome in outcomes)
    if args.part == WHOLE and not late:
        paths = write_pages(Results(list(SETTINGS.values()), plan), outcomes, plan.out)
        say(f"{len(paths) - 2} files of tables and figures; the page: {paths[0]}, {paths[1]}")
    say(f"{_summary(outcomes)}; {time.monotonic() - began:.0f} s")
    if any(outcome.state == FAILED for outcome in outcomes):
        return 1
    return WORK_LEFT if late else 0


def _work(todo: list[Chain], plan: Plan, args: argparse.Namespace, began: float) -> list[Outcome]:
    """Do the work on this machine's device."""
    heavy = any(work.has_work(chain, plan) for chain in todo)
    device = find_device() if heavy else CPU
    if heavy and plan.train and expects_accelerator() and not device.accelerator:
        raise UserError("there is no accelerator to train on (see above): to train on the CPU, set JAX_PLATFORMS=cpu")
    deadline = None
    if args.minutes is not None:
        deadline = began + 60 * args.minutes - (PACK_SECONDS if args.pack else 0.0)
    workers = args.workers or default_workers(device)
    with shared(device) as environment, board() as look:
        if device.accelerator:
            mps = " with MPS" if environment else ""
            say(f"{device.name}, {device.memory / 2**30:.0f} GiB: {workers} runs side by side{mps}")
        return do_all(todo, plan, Means(workers, device, environment, deadline), Show(say, look))


def _pack(plan: Plan, args: argparse.Namespace) -> None:
    paths, remarks = pack(plan.out, args.pack, args.pack_mib)
    for path in paths:
        say(f"{path}: {path.stat().st_size / MIB:.1f} MiB")
    for remark in remarks:
        say(remark)


def _summary(outcomes: list[Outcome]) -> str:
    """Number of outcomes by state, with reasons of jobs that were not run."""
    counts = Counter(
        f"{outcome.state} ({outcome.why})" if outcome.state == NOT_RUN else outcome.state for outcome in outcomes
    )
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def _plan(args: argparse.Namespace) -> Plan:
    """The plan of the options; raises `UserError` for those that cannot work."""
    for name, least in (("workers", 1), ("shares", 1), ("episodes", 100), ("minutes", 0), ("pack_mib", 1)):
        given = getattr(args, name)
        if given is not None and given < least:
            raise UserError(f"--{name.replace('_', '-')} must be at least {least}; given {given:g}")
    out = args.out or (QUICK if args.quick else FULL)
    for option, folder in (("--out", out), ("--pack", args.pack)):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise UserError(f"{option} {folder} is a file; expected a folder")
    base = None if args.quick or args.fresh else args.results
    if base is not None and not base.is_dir():
        say(f"no results in {base}: starting from the pretrained teams alone")
        base = None
    if base is not None and base.resolve() == out.resolve():
        base = None
    for path in args.data:
        if not Path(path).exists():
            raise UserError(f"--data {path}: there is no such file or folder")
    data = tuple(args.data) or ((DATA,) if Path(DATA).exists() else ())
    return Plan(out, base, args.quick, args.train, data, args.episodes, fresh=args.fresh, only=tuple(args.only))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "icmape reproduce", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    names = ", ".join(SETTINGS)
    add("settings", nargs="*", metavar="SETTING", help=f"{names}; by default all. The page shows all")
    add(
        "--methods",
        nargs="+",
        default=[],
        metavar="ROLE",
        help="only these methods or trials (SETTING/ROLE: of one setting), no rules",
    )
    add("--out", type=Path, help=f"folder for new results, tables and pages; by default {FULL}")
    add("--results", type=Path, default=RESULTS, help="folder of existing results; nothing is written to it")
    add("--fresh", action="store_true", help="use neither existing results nor pretrained teams: train ours too")
    add("--quick", action="store_true", help="train and evaluate everything at a small size, one seed; all is marked")
    add("--train", action="store_true", help="also train methods without teams. Takes days on a CPU")
    add("--workers", type=int, help="processes; by default 2, on an accelerator by its memory and the cores")
    add("--minutes", type=float, help=f"time limit: every run saves its state; exit code {WORK_LEFT} if work is left")
    add("--pack", type=Path, metavar="FOLDER", help="at the end, write results and checkpoints to archives in FOLDER")
    add("--pack-mib", type=float, default=MOST_MIB, help="size of all archives together (default %(default)s)")
    add("--unpack", type=Path, metavar="FOLDER", help="at the beginning, restore what --pack wrote to FOLDER")
    add("--part", default=WHOLE, help="I/N: compute only the I-th of N shares and draw nothing; for several machines")
    add("--on", choices=PLACES, help="do the shares as workers: processes of this machine, Slurm jobs, or Ray tasks")
    add("--shares", type=int, default=2, help="with --on: the number of workers (default %(default)s)")
    add(
        "--parameters",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="with --on: of the jobs, such as partition=gpu",
    )
    add("--episodes", type=int, help="upper limit of worlds per team, for a first look")
    add("--data", nargs="+", default=[], help=f"files or folders of measurements for nitrate; by default {DATA}")
    add("--only", nargs="+", default=(), metavar="NAME", help="parts of file names: compute only such results")
    add("--list", action="store_true", help="list runs with budgets and estimates, and what is missing; do nothing")
    return parser
