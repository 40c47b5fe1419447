"""What the page of `icmape train --watch` shows: the course of a run, as JSON."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from icmape.learning.config import Config
from icmape.learning.phases import PHASE
from icmape.learning.run import Progress
from icmape.learning.run_files import read_metrics
from icmape_agent.look import OTHERS

COLUMNS = (
    *("seed", "iteration", "accuracy", "tau", "step_cost", "inference_loss", "validation_accuracy", "validation_tau"),
    *("best_accuracy", "best_tau"),
)


class Board(logging.Handler):
    """Reports of a run, and what it is at. The page's thread reads what the run's thread writes."""

    def __init__(self, folder: Path, config: Config, *, resumed: bool, clock: Callable[[], float] = time.monotonic):
        super().__init__(logging.INFO)
        self.config, self._clock, self._lock = config, clock, threading.Lock()
        self.title = folder.name
        self._rows: list[list[Any]] = []
        self._phase, self._began, self._ended = "starting", clock(), ""
        self._now: dict[str, Any] = {"iteration": 0, "seconds": 0.0, "left": None, "rounds_per_second": None}
        if resumed:
            self._add(read_metrics(folder / "metrics.jsonl"))

    def emit(self, record: logging.LogRecord) -> None:
        """What the run is at now; other messages are not shown."""
        if (phase := getattr(record, PHASE, None)) is not None:
            with self._lock:
                self._phase, self._began = str(phase), self._clock()

    def report(self, progress: Progress) -> None:
        """One report of the training."""
        with self._lock:
            self._now = {
                "iteration": progress.iteration,
                "seconds": progress.seconds,
                "left": progress.left,
                "rounds_per_second": progress.steps_per_second,
            }
            last = max((row[1] for row in self._rows), default=0)
            self._add(row for row in progress.rows if row["iteration"] > last)

    def end(self, how: str) -> None:
        """The run is over."""
        with self._lock:
            self._ended = how

    def state(self, after: int) -> dict[str, Any]:
        """Everything, with the rows from number `after` on."""
        with self._lock:
            return {
                "title": self.title,
                "target": 1 - self.config.delta,
                "iterations": self.config.iterations,
                "seeds": list(self.config.seeds),
                "colours": [f"--method-{OTHERS[i % len(OTHERS)]}" for i in range(len(self.config.seeds))],
                "phase": self._phase,
                "phase_seconds": self._clock() - self._began,
                "ended": self._ended,
                **self._now,
                "columns": COLUMNS,
                "rows": self._rows[after:],
                "count": len(self._rows),
            }

    def _add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows += [[row.get(name) for name in COLUMNS] for row in rows]
