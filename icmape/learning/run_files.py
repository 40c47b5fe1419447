"""Files in the folder of a run. They remain readable if the process is killed at any time.

RUN/config.json      problem and settings; training with it repeats the run
RUN/plan.json        the plans of all seeds
RUN/metrics.jsonl    one line per seed and chunk
RUN/checkpoint.eqx   the complete training state (`learning/checkpoints.py`)
RUN/team-SEED.safetensors
"""

import json
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from icmape.io import naming, write_atomically
from icmape.learning.checkpoints import NEWEST, save_checkpoint, settings_of
from icmape.learning.config import Config
from icmape.learning.plan import PlanFound
from icmape.learning.planning import write_plans
from icmape.problem import Problem
from icmape.version import __version__

log = logging.getLogger("icmape")

LARGEST = 1e30  # of a number in a row of metrics
CHECK = "crc32"
PATIENCE = 600.0  # seconds that a finished run waits for room on a full disk


class Line(NamedTuple):
    """A line of metrics; its row is None if it is damaged."""

    text: bytes
    row: dict[str, Any] | None


class MetricsFile:
    """Lines of JSON, each with a checksum. A row that cannot be written is kept until it can.

    A resumed run writes no row twice. It removes an incomplete last line and damaged ones, and what follows a damaged
    line and is written again: rows after `iteration`, that of the checkpoint.
    """

    def __init__(self, path: Path, iteration: int | None = None):
        self.path = path
        lines = _lines(_content(path))
        torn = next((at for at, line in enumerate(lines) if line.row is None), len(lines))
        late = [line for line in lines[torn:] if line.row and (iteration is None or line.row["iteration"] <= iteration)]
        kept = [*lines[:torn], *late]
        if kept == lines[: len(kept)] != lines:
            os.truncate(path, sum(len(line.text) for line in kept))  # this needs no room on a full disk
        elif kept != lines:
            write_atomically(path, b"".join(line.text for line in kept))
        self.written = {(line.row["seed"], line.row["iteration"]) for line in kept if line.row}
        self._pending = b""
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (open as long as the run)

    def write(self, row: dict[str, Any]) -> None:
        """Append a row, unless the file already has it."""
        if (row["seed"], row["iteration"]) in self.written:
            return
        self.written.add((row["seed"], row["iteration"]))
        self._pending += _with_checksum(json.dumps(row))
        self.flush()

    def flush(self, sync: bool = False) -> None:
        """Write what is left to write, and force it to the disk if `sync`."""
        with naming(self.path):
            while self._pending:
                self._pending = self._pending[self._file.write(self._pending) or 0 :]
            if sync:
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Flush to disk and close."""
        try:
            self.flush(sync=True)
        finally:
            self._file.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All whole rows. Damaged lines are told and left out; an incomplete last line is one that is being written."""
    return parse_metrics(_content(path), path)


def parse_metrics(content: bytes, path: Path) -> list[dict[str, Any]]:
    """The same of the content of a file, wherever it lies."""
    lines = _lines(content)
    rows = [line.row for line in lines if line.row is not None]
    damaged = sum(line.row is None for line in lines[:-1]) + sum(
        line.row is None and line.text.endswith(b"\n") for line in lines[-1:]
    )
    if damaged:
        log.warning("%s: %d of %d lines are damaged and left out", path, damaged, len(lines))
    return rows


def _with_checksum(text: str) -> bytes:
    return f'{text[:-1]}, "{CHECK}": "{crc32(text.encode()):08x}"}}\n'.encode()


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _lines(content: bytes) -> list[Line]:
    """All lines. Once a line has a checksum, those that follow must have one: older versions wrote none."""
    lines: list[Line] = []
    needed = False
    for text in content.splitlines(keepends=True):
        row = _row(text)
        checksum = row.pop(CHECK, None) if row else None
        if row is not None and (checksum is not None or needed) and text != _with_checksum(json.dumps(row)):
            row = None
        needed = needed or checksum is not None
        lines.append(Line(text, row))
    return lines


def _row(text: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return row if text.endswith(b"\n") and _is_row(row) else None


def _is_row(row: Any) -> bool:
    """Whether this is a row of metrics: finite numbers or null by name, seed and iteration among them."""
    if not isinstance(row, dict) or not all(type(row.get(name)) is int for name in ("seed", "iteration")):
        return False
    numbers = [value for name, value in row.items() if value is not None and name != CHECK]
    return all(type(value) in (int, float) and abs(value) <= LARGEST for value in numbers)  # NaN is not


class RunFiles:
    """What a run writes while it trains. Nothing that cannot be written ends it: it is told, and tried again later.

    A checkpoint is written after the plan and the metrics before it, so that a resumed run has all of them.
    """

    def __init__(self, folder: Path, problem: Problem, config: Config, iteration: int, plans: PlanFound | None):
        self.folder, self.config = folder, config
        self.settings = settings_of(problem, config)
        self.metrics = MetricsFile(folder / "metrics.jsonl", iteration)
        self._plans = plans  # until they are written
        self._told = False
        self._try(self._write_plans)

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Append rows of metrics."""
        for row in rows:
            self._try(partial(self.metrics.write, row))

    def save(self, iteration: int, seconds: float, states: Any) -> bool:
        """Write a checkpoint; whether that was possible."""
        return self._try(lambda: self._save(iteration, seconds, states))

    def finish(self, iteration: int, seconds: float, states: Any, interrupted: Callable[[], bool]) -> None:
        """Write the last checkpoint. On a full disk, wait for room; an interrupted run does not wait."""
        deadline = time.monotonic() + PATIENCE
        while not self.save(iteration, seconds, states) and not interrupted() and time.monotonic() < deadline:
            time.sleep(1.0)
        self._try(self.metrics.close)

    def _save(self, iteration: int, seconds: float, states: Any) -> None:
        self._write_plans()
        self.metrics.flush(sync=True)
        header = {
            "version": __version__,
            "iteration": iteration,
            "seconds": seconds,
            "seeds": list(self.config.seeds),
            "settings": self.settings,
        }
        save_checkpoint(self.folder / NEWEST, header, states)
        if self._told:
            log.warning("%s: everything is written again", self.folder)
        self._told = False

    def _write_plans(self) -> None:
        if self._plans is not None:
            write_plans(self.folder, self.config, self._plans)
            self._plans = None

    def _try(self, write: Callable[[], None]) -> bool:
        """Whether nothing failed. The first of several failures is told."""
        try:
            write()
        except OSError as error:
            if not self._told:
                log.error("%s; training goes on, and what is missing is written when that is possible", error)
            self._told = True
            return False
        return True
