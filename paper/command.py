"""`icmape reproduce`."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from icmape.errors import UserError
from icmape.plot.terminal import say
from icmape.zoo.hotspot.hotspot import DATA
from paper.collected import Results
from paper.experiments import SETTINGS, setting_named
from paper.pages import write_pages
from paper.work import Chain, chains, do_all, part_of, work
from paper.work_plan import FAILED, NOT_RUN, THERE, Outcome, Plan

RESULTS = Path("results")
WHOLE = "1/1"
FULL, QUICK = Path("runs/reproduce"), Path("runs/reproduce-quick")
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """Compute missing results of the paper, then write all tables, figures and one page.

    Stored results and teams are used. Each new result has its own file, so an interrupted command can be repeated.
    Training at full size needs --train and an accelerator.
    """

    settings: tyro.conf.Positional[tuple[str, ...]] = ()
    """Settings to work on: a3p5, a5p3, signal, nitrate, nitrate-n1; by default all. The page shows all."""
    out: Path | None = None
    """Folder for new results, tables/, figures/, results.md and index.html; by default runs/reproduce."""
    results: Path = RESULTS
    """Folder of existing results; nothing is written to it."""
    quick: Flag = False
    """Train and evaluate everything from scratch at a small size, one seed; every figure is marked."""
    train: Flag = False
    """Also train methods without teams. Takes days on a CPU."""
    workers: int = min(2, os.cpu_count() or 1)
    """Number of processes."""
    part: str = WHOLE
    """I/N: compute only the I-th of N shares and draw nothing; for several machines."""
    episodes: int | None = None
    """Upper limit of worlds per team, for a first look."""
    data: tuple[str, ...] = ()
    """Files or folders of measurements for nitrate; by default data/wqp if it exists."""
    only: tuple[str, ...] = ()
    """Parts of file names: compute only such results, for example `curve-` or `certificate`; pages show all."""
    list: Flag = False
    """List what is missing and do nothing."""


def reproduce_command(arguments: list[str]) -> int:
    """Every table and figure of the paper."""
    args = tyro.cli(ReproduceOptions, prog="icmape reproduce", args=arguments)
    chosen = [setting_named(name) for name in args.settings or SETTINGS]
    plan = _plan(args)
    todo = part_of(chains(chosen, plan), args.part)
    if args.list:
        return _list(todo, replace(plan, dry=True))
    began = time.monotonic()
    with _ended_by_signals():
        outcomes = do_all(todo, plan, args.workers, say)
    if args.part == WHOLE:
        paths = write_pages(Results(list(SETTINGS.values()), plan), outcomes, plan.out)
        say(f"{len(paths) - 2} files of tables and figures; the page: {paths[0]}, {paths[1]}")
    say(f"{_summary(outcomes)}; {time.monotonic() - began:.0f} s")
    return 1 if any(outcome.state == FAILED for outcome in outcomes) else 0


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Treat SIGTERM as an interruption, so that workers are terminated too."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _summary(outcomes: list[Outcome]) -> str:
    """Number of outcomes by state, with reasons of jobs that were not run."""
    counts = Counter(
        f"{outcome.state} ({outcome.why})" if outcome.state == NOT_RUN else outcome.state for outcome in outcomes
    )
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def _plan(args: ReproduceOptions) -> Plan:
    quick = args.quick
    if args.workers < 1:
        raise UserError(f"--workers must be at least 1; given {args.workers}")
    if args.episodes is not None and args.episodes < 100:
        raise UserError(f"--episodes must be at least 100; given {args.episodes}")
    out = args.out or (QUICK if quick else FULL)
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file; expected a folder")
    base = None if quick else args.results
    if base is not None and not base.is_dir():
        say(f"no results in {base}: starting from the pretrained teams alone")
        base = None
    if base is not None and base.resolve() == out.resolve():
        base = None
    for path in args.data:
        if not Path(path).exists():
            raise UserError(f"--data {path}: there is no such file or folder")
    data = tuple(args.data) or ((DATA,) if Path(DATA).exists() else ())
    return Plan(out, base, quick, args.train, data, args.episodes, only=args.only)


def _list(todo: list[Chain], plan: Plan) -> int:
    for chain in todo:
        outcomes = work(chain, plan)
        missing = [outcome.name.rpartition("/")[2] for outcome in outcomes if outcome.state != THERE]
        say(f"{chain}: {'missing ' + ', '.join(missing) if missing else 'there'}")
    say(f"{len(todo)} chains of work: one process runs a chain, in order")
    return 0
