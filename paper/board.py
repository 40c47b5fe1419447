"""The display of the queue: a live table on a terminal, a line for each run once a minute elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from icmape.plot.terminal import out
from paper.processes import Worker
from paper.queue import Queue
from paper.work import JUDGE

GIB = 2**30
LINES_SECONDS = 60.0  # between two reports where there is no terminal


@contextmanager
def board(console: Console = out) -> Iterator[Callable[[Queue], None]]:
    """A function that shows the state of a queue."""
    if console.is_terminal:
        with Live(console=console, refresh_per_second=2, transient=True) as live:
            yield lambda queue: live.update(render(queue))
        return
    shown = time.monotonic()

    def print_lines(queue: Queue) -> None:
        nonlocal shown
        if time.monotonic() - shown >= LINES_SECONDS:
            shown = time.monotonic()
            for line in lines(queue):
                console.print(line, soft_wrap=True, highlight=False, markup=False)

    yield print_lines


def render(queue: Queue) -> Table:
    """All processes at work, and what is left."""
    table = Table(box=None, pad_edge=False, header_style="bold", caption=summary(queue), caption_justify="left")
    for heading in ("run", "where", "iterations", "seeds", "memory", "left"):
        table.add_column(heading)
    for worker in queue.running:
        table.add_row(*cells(worker))
    return table


def cells(worker: Worker) -> tuple[str, ...]:
    """A process in words: its run, lane, iterations, seeds (accuracy at τ), memory and remaining time."""
    name, report = str(worker.task.chain), worker.progress
    if worker.task.part == JUDGE or not worker.task.chain.role:
        return name, worker.lane, "analysis", "", "", ""
    if report is None:
        return name, worker.lane, worker.note, "", _memory(worker.memory), ""
    if report.iteration >= report.iterations:
        return name, worker.lane, "trained", "", "", ""
    seeds = "  ".join(f"{row['seed']}: {_number(row, 'accuracy')} at {_number(row, 'tau')}" for row in report.rows)
    iterations = f"{report.iteration} of {report.iterations}"
    return name, worker.lane, iterations, seeds, _memory(report.memory or worker.memory), in_minutes(report.left)


def lines(queue: Queue) -> list[str]:
    """The same as plain text."""
    rows = [", ".join(filter(None, cells(worker))) for worker in queue.running]
    return [*rows, summary(queue)]


def summary(queue: Queue) -> str:
    """What is at work, waits and is left."""
    waiting = sum(task.part != JUDGE for task in queue.waiting)
    text = f"{len(queue.running)} at work, {waiting} waiting; training ends in about {in_minutes(queue.seconds_left())}"
    limit = queue.means.deadline
    return text + (f"; the limit is in {in_minutes(limit - time.monotonic())}" if limit is not None else "")


def in_minutes(seconds: float) -> str:
    """A duration in minutes, or hours."""
    return f"{seconds / 3600:.1f} h" if seconds >= 3 * 3600 else f"{max(seconds, 0) / 60:.1f} min"


def _memory(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size else ""


def _number(row: dict, name: str) -> str:
    found = row.get(name)
    return "–" if found is None else f"{found:.3g}"
