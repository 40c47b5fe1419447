"""The live display of a training run."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from icmape.learning.config import Config
from icmape.learning.run import Progress
from icmape.plot.terminal import SafeConsole

log = logging.getLogger("icmape")

COLUMNS = {
    "accuracy": ("accuracy", ".3f"),
    "tau": ("τ", ".2f"),
    "confidence": ("confidence", ".3f"),
    "step_cost": ("ζ", ".4f"),
    "inference_loss": ("inference", ".3f"),
    "critic_loss": ("critic", ".4f"),
    "actor_loss": ("actor", ".3f"),
    "best_accuracy": ("best", ".3f"),
    "best_tau": ("at τ", ".2f"),
}
"""What is shown of a metrics row: heading and format."""


COMPILING = "compiling: some 30 s the first time, from the cache on disk after that"


@contextmanager
def display(config: Config, console: Console | None = None) -> Iterator[Callable[[Progress], None]]:
    """A live table on a terminal; occasional lines elsewhere (logs, pipes).

    Messages of the run are shown too.
    """
    console = console or SafeConsole(stderr=True)
    if not console.is_terminal:
        console.print(COMPILING)
        with _messages_shown(lambda message: console.print(message, soft_wrap=True)):
            yield _line_printer(console)
        return
    with Live(Text(COMPILING), console=console, refresh_per_second=4) as live:

        def show_message(message: str) -> None:
            live.console.print(message, soft_wrap=True)

        with _messages_shown(show_message):
            yield lambda report: live.update(render(report, config))


class _MessageHandler(logging.Handler):
    """Passes log messages to a function."""

    def __init__(self, show_message: Callable[[str], None]):
        super().__init__(logging.INFO)
        self.show_message = show_message

    def emit(self, record: logging.LogRecord) -> None:
        """One message."""
        self.show_message(record.getMessage())


@contextmanager
def _messages_shown(show_message: Callable[[str], None]) -> Iterator[None]:
    """Show the package's log messages with this function instead of on standard error."""
    handler, level, onward = _MessageHandler(show_message), log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = onward


def render(report: Progress, config: Config) -> Group:
    """The display after a chunk."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("seed", *(heading for heading, _ in COLUMNS.values())):
        table.add_column(heading, justify="right")
    for row in report.rows:
        table.add_row(str(row["seed"]), *(_cell(row.get(name), form) for name, (_, form) in COLUMNS.items()))
    status = Text(
        f"iteration {report.iteration:,}/{report.iterations:,}   {report.steps_per_second:,.0f} rounds/s   "
        f"{clock(report.seconds)} gone, {clock(report.left)} left   target {1 - config.delta:g}"
    )
    bar = Table.grid(expand=True)  # a bar alone would not end its line
    bar.add_row(ProgressBar(report.iterations, report.iteration))
    return Group(bar, status, table)


def _line_printer(console: Console) -> Callable[[Progress], None]:
    shown = -1e9

    def show(report: Progress) -> None:
        nonlocal shown
        if report.seconds - shown < 10 and report.iteration < report.iterations:
            return
        shown = report.seconds
        for row in report.rows:
            cells = "  ".join(f"{heading} {_cell(row.get(k), form)}" for k, (heading, form) in COLUMNS.items())
            speed = f"{report.steps_per_second:,.0f} rounds/s, {clock(report.left)} left"
            console.print(
                f"{report.iteration:>6,}/{report.iterations:,}  seed {row['seed']}  {cells}  {speed}", soft_wrap=True
            )

    return show


def _cell(value: Any, form: str) -> str:
    return "–" if value is None else format(value, form)


def clock(seconds: float) -> str:
    """h:mm:ss, or m:ss."""
    minutes, remainder = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remainder:02}" if hours else f"{minutes}:{remainder:02}"
