"""The live display of a training run."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from icmape.learning.config import Config
from icmape.learning.phases import PHASE, TRAINING, Phase
from icmape.learning.run import Progress
from icmape.learning.validation import standard_error
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


NARROW = 96
"""Below this many columns the losses are left out."""
LOSSES = ("inference_loss", "critic_loss", "actor_loss")

MARKS = "▁▂▃▄▅▆▇█"
WIDTH = 30  # of a sparkline


@contextmanager
def display(config: Config, console: Console | None = None) -> Iterator[Callable[[Progress], None]]:
    """A live display on a terminal; occasional lines elsewhere (logs, pipes).

    What the run is at and its messages are shown too.
    """
    console = console or SafeConsole(stderr=True)
    if not console.is_terminal:
        show_line = lambda message: console.print(str(message), soft_wrap=True)  # noqa: E731
        with _messages_shown(show_line, show_line):
            yield _line_printer(console, config.validation_episodes)
        return
    frame = Frame(config)
    with keys_hidden(), Live(frame, console=console, refresh_per_second=4) as live:

        def show_message(message: str) -> None:
            live.console.print(message, soft_wrap=True)

        try:
            with _messages_shown(show_message, frame.begin):
                yield frame.show
        except Exception:
            frame.clear()
            raise
        except BaseException:  # Ctrl-C
            frame.end(stopped=True)
            raise
        frame.end()


@contextmanager
def phases_shown(first: str, console: Console | None = None) -> Iterator[None]:
    """Say what slow work without a run is at: in one line on a terminal, in a line for each phase elsewhere."""
    console = console or SafeConsole(stderr=True)
    show_line = lambda message: console.print(str(message), soft_wrap=True, highlight=False)  # noqa: E731
    if not console.is_terminal:
        show_line(first)
        with _messages_shown(show_line, show_line):
            yield
        return
    with console.status(first) as status, _messages_shown(show_line, lambda phase: status.update(str(phase))):
        yield


class Frame:
    """What a terminal shows of a run: past phases, the one it is at, for how long, and the last report."""

    def __init__(self, config: Config, clock: Callable[[], float] = time.monotonic):
        self.config, self._clock = config, clock
        self._spinner = Spinner("dots")
        self._report: Progress | None = None
        self._history: dict[int, list[Any]] = {}
        self._phase: Phase | None = None
        self._past: list[str] = []

    def begin(self, phase: Phase) -> None:
        """What begins now, or news of the phase."""
        if self._phase is None or phase.name != self._phase.name:
            self._put_away("✓")
            self._began = self._clock()
        self._phase = phase

    def _put_away(self, mark: str) -> None:
        if self._phase is not None:
            self._past.append(f"{mark} {self._phase.name} {clock(self._clock() - self._began)}")
        self._phase = None

    def show(self, report: Progress) -> None:
        """A report of the training."""
        self._report = report
        for row in report.rows:
            self._history.setdefault(row["seed"], []).append(row)

    def end(self, stopped: bool = False) -> None:
        """The last frame stays on the terminal; a phase that was stopped is marked."""
        self._put_away("■" if stopped else "✓")

    def clear(self) -> None:
        """Nothing stays on the terminal: an error says what there is to say."""
        self._past, self._phase, self._report = [], None, None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        if self._past:
            yield Text("  ".join(self._past), style="dim")
        if self._phase is not None and (self._report is None or self._phase.name != TRAINING):
            name, *more = filter(None, self._phase)
            line = Text(f"{name} {clock(self._clock() - self._began)}   ").append("   ".join(more), style="dim")
            self._spinner.update(text=line)
            yield self._spinner
        if self._report is not None:
            yield render(self._report, self.config, self._history, options.max_width)


@contextmanager
def keys_hidden() -> Iterator[None]:
    """Keys are not echoed: ^C and others would be written into the frame. Nothing is changed in the background."""
    try:
        import termios

        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
    except (ImportError, OSError, ValueError, termios.error):  # no terminal
        yield
        return
    in_front = lambda: os.getpgrp() == os.tcgetpgrp(keyboard)  # noqa: E731 (others are stopped by tcsetattr)
    if in_front():
        silent = [*before]
        silent[3] &= ~(termios.ECHO | termios.ECHOCTL)
        termios.tcsetattr(keyboard, termios.TCSANOW, silent)
    try:
        yield
    finally:
        if in_front():
            termios.tcsetattr(keyboard, termios.TCSANOW, before)


class _MessageHandler(logging.Handler):
    """Passes messages of the log to one function, and what a run is at to another."""

    def __init__(self, show_message: Callable[[str], None], show_phase: Callable[[Phase], None]):
        super().__init__(logging.INFO)
        self.show_message, self.show_phase = show_message, show_phase

    def emit(self, record: logging.LogRecord) -> None:
        """One message."""
        phase = getattr(record, PHASE, None)
        if phase is not None:
            self.show_phase(phase)
        else:
            self.show_message(record.getMessage())


@contextmanager
def _messages_shown(show_message: Callable[[str], None], show_phase: Callable[[Phase], None]) -> Iterator[None]:
    """Show the package's log messages with these functions instead of on standard error."""
    handler, level, onward = _MessageHandler(show_message, show_phase), log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = onward


def render(
    report: Progress, config: Config, history: Mapping[int, list[Any]] | None = None, width: int = NARROW
) -> Group:
    """The display after a chunk; `history` holds all reports of every seed."""
    shown = {name: column for name, column in COLUMNS.items() if width >= NARROW or name not in LOSSES}
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("seed", *(heading for heading, _ in shown.values())):
        table.add_column(heading, justify="right")
    for row in report.rows:
        holds = (row.get("accuracy") or 0.0) >= 1 - config.delta
        table.add_row(
            str(row["seed"]),
            *(
                Text(_cell(row.get(name), form), style="green" if name == "accuracy" and holds else "")
                for name, (_, form) in shown.items()
            ),
        )
    status = Text(
        f"iteration {report.iteration:,}/{report.iterations:,}   {report.steps_per_second:,.0f} rounds/s   "
        f"{clock(report.seconds)} gone, {clock(report.left)} left   target {1 - config.delta:g}"
    )
    bar = Table.grid(expand=True)  # a bar alone would not end its line
    bar.add_row(ProgressBar(report.iterations, report.iteration))
    return Group(bar, status, table, *_about_best(report, config), *_courses(history or {}, 1 - config.delta))


def _about_best(report: Progress, config: Config) -> Iterator[Text]:
    """On how many worlds the best team was chosen, once there is one: the best of many validations looks too good."""
    best = [row["best_accuracy"] for row in report.rows if row.get("best_accuracy")]
    if best:
        error = max(standard_error(accuracy, config.validation_episodes) for accuracy in best)
        chosen = f"best: on {config.validation_episodes:,} validation worlds, standard error {error:.3f}"
        yield Text(f"{chosen}; the best of many is a little too high", style="dim")


def _best_cell(accuracy: float | None, worlds: int) -> str:
    """The accuracy of the best team, and how well it is known."""
    shown = _cell(accuracy, COLUMNS["best_accuracy"][1])
    return f"{shown} (standard error {standard_error(accuracy, worlds):.3f}, {worlds:,} worlds)" if accuracy else shown


def _courses(history: Mapping[int, list[Any]], target: float) -> Iterator[Text]:
    """Accuracy and τ of each seed from the first report on, green where the accuracy is on target."""
    for seed, rows in history.items():
        shown = [rows[index * len(rows) // WIDTH] for index in range(WIDTH)] if len(rows) > WIDTH else rows
        held = [(row.get("accuracy") or 0.0) >= target for row in shown]
        line = Text(f"seed {seed}  accuracy ")
        for name, low, high in (("accuracy", 0.0, 1.0), ("tau", 1.0, None)):
            values = [row.get(name) for row in shown]
            top = max((value for value in values if value is not None), default=1.0) if high is None else high
            for value, on_target in zip(values, held, strict=True):
                line.append(_mark(value, low, top), style="green" if on_target else "")
            line.append("   τ " if name == "accuracy" else "")
        yield line


def _mark(value: float | None, low: float, high: float) -> str:
    """A block whose height shows a value."""
    if value is None:
        return " "
    part = (value - low) / max(high - low, 1e-9)
    return MARKS[min(len(MARKS) - 1, max(0, int(part * len(MARKS))))]


def _line_printer(console: Console, worlds: int) -> Callable[[Progress], None]:
    """Prints a line of a seed now and then; the best team is validated on so many worlds."""
    shown = -1e9

    def show(report: Progress) -> None:
        nonlocal shown
        if report.seconds - shown < 10 and report.iteration < report.iterations:
            return
        shown = report.seconds
        for row in report.rows:
            values = {name: _cell(row.get(name), form) for name, (_, form) in COLUMNS.items()}
            values["best_accuracy"] = _best_cell(row.get("best_accuracy"), worlds)
            cells = "  ".join(f"{heading} {values[name]}" for name, (heading, _) in COLUMNS.items())
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
