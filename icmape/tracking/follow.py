"""A training run in trackers: every row once, also over interruptions, and never at the cost of the run."""

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from icmape.errors import UserError
from icmape.evaluation.metrics import evaluate
from icmape.io import read_bounded, write_atomically
from icmape.learning.phases import begin
from icmape.learning.run import Progress, Run
from icmape.learning.run_files import read_metrics
from icmape.learning.run_folder import TRACKING
from icmape.learning.run_teams import team_of
from icmape.tracking.backends import TENSORBOARD_FOLDER, TRACKERS, Tracker, check_installed

log = logging.getLogger("icmape")

NOT_METRICS = ("seed", "iteration", "member")
EPISODES, SEED = 10_000, 0  # of the final evaluation: those of `icmape evaluate RUN`
REPORTED = ("accuracy", "accuracy_low", "accuracy_high", "tau", "confidence", "log_loss", "ece", "exact_accuracy")


class Tracking:
    """Follows a run. What each tracker has is kept in RUN/tracking.json, so that a resumed run goes on there.

    Trackers are opened with the first report. One that fails is told and left; training goes on.
    """

    def __init__(self, folder: Path, names: Sequence[str], *, resumed: bool = False):
        for name in names:
            check_installed(name)
        self.folder, self.names, self.resumed = folder, tuple(names), resumed
        self._memories: dict[str, dict[str, Any]] = {}
        self._open: dict[str, Tracker] = {}
        self._begun = False

    def report(self, progress: Progress) -> None:
        """Log the rows of a report that the trackers do not have."""
        self._begin(progress.iteration)
        self._log(progress.rows)

    def finish(self, run: Run, figures: Mapping[str, Path | None]) -> None:
        """Log figures and, if the run is finished, an evaluation of its teams; then close the trackers."""
        if not self.names:
            return
        iteration = run.iteration
        self._begin(iteration + 1)
        results = _evaluated(run) if run.finished and self._open else {}
        for name, tracker in list(self._open.items()):
            if results:
                self._try(name, partial(tracker.results, results, iteration))
            for title, picture in figures.items():
                if picture is not None:
                    self._try(name, partial(tracker.figure, title, picture, iteration))
        self.close()

    def close(self) -> None:
        """Close the trackers."""
        for name, tracker in list(self._open.items()):
            self._try(name, tracker.close)
        self._open = {}

    def _begin(self, first: int) -> None:
        """Open the trackers, and log the rows that a resumed run wrote before. It is trained from `first` on."""
        if self._begun or not self.names:
            return
        self._begun = True
        known = read_tracking(self.folder) if self.resumed else {}
        if not self.resumed:
            shutil.rmtree(self.folder / TENSORBOARD_FOLDER, ignore_errors=True)
        config = json.loads(read_bounded(self.folder / "config.json"))
        for name in self.names:
            memory = self._memories[name] = known.get(name, {})
            self._try(name, partial(self._open_one, name, config, memory, first))
        self._log(read_metrics(self.folder / "metrics.jsonl"))

    def _open_one(self, name: str, config: Mapping[str, Any], memory: dict[str, Any], first: int) -> None:
        self._open[name] = TRACKERS[name](self.folder, config, memory, first)

    def _log(self, rows: Iterable[Mapping[str, Any]]) -> None:
        by_iteration: dict[int, dict[str, float]] = {}
        for row in rows:
            by_iteration.setdefault(row["iteration"], {}).update(_named(row))
        for name, tracker in list(self._open.items()):
            memory = self._memories[name]
            missing = [(i, values) for i, values in sorted(by_iteration.items()) if i > memory.get("logged", 0)]
            for iteration, values in missing:
                if not self._try(name, partial(tracker.numbers, values, iteration)):
                    break  # a resumed run logs what is missing
                memory["logged"] = iteration
        if self._memories:
            with suppress(OSError):  # on a full disk; the next report writes it
                write_atomically(self.folder / TRACKING, json.dumps(self._memories, indent=2).encode() + b"\n")

    def _try(self, name: str, action: Callable[[], None]) -> bool:
        """Whether it succeeded; if not, the tracker is left."""
        try:
            action()
            return True
        except Exception as error:  # trackers depend on networks and accounts
            failed = self._open.pop(name, None)
            if failed is not None:
                with suppress(Exception):  # what it has is kept where that is possible
                    failed.close()
            log.error("%s failed and is left; training goes on (%s: %s)", name, type(error).__name__, error)
            return False


def tracked_with(folder: Path, given: Sequence[str] | None) -> tuple[str, ...]:
    """The trackers of a resumed run: those that are given, or those that it had."""
    return tuple(read_tracking(folder)) if given is None else tuple(given)


def read_tracking(folder: Path) -> dict[str, dict[str, Any]]:
    """What RUN/tracking.json says of each tracker."""
    path = folder / TRACKING
    if not path.exists():
        return {}
    try:
        content = json.loads(read_bounded(path))
        if not all(name in TRACKERS and isinstance(memory, dict) for name, memory in content.items()):
            raise ValueError("given something else than trackers")
    except (ValueError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is damaged ({error}): delete it, and the run is tracked as a new one") from error
    return dict(content)


def _named(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row by name and seed."""
    return {
        f"{name}/seed-{row['seed']}": value
        for name, value in row.items()
        if name not in NOT_METRICS and value is not None
    }


def _evaluated(run: Run) -> dict[str, float]:
    """The final numbers; none if the evaluation fails: the run has saved its teams, and goes on to its summary."""
    try:
        return _final_numbers(run)
    except Exception as error:
        log.error("the trackers get no evaluation of the teams (%s: %s)", type(error).__name__, error)
        return {}


def _final_numbers(run: Run) -> dict[str, float]:
    """The teams of all seeds without fault, evaluated as `icmape evaluate` does."""
    begin("evaluating the teams for the trackers", f"{EPISODES:,} episodes")
    numbers: dict[str, float] = {}
    for seed in [seed for seed in run.config.seeds if seed not in run.faults()]:
        result = evaluate(team_of(run, seed), episodes=EPISODES, seed=SEED)
        values = {name: getattr(result, name) for name in REPORTED}
        numbers |= {f"evaluation/{name}/seed-{seed}": float(x) for name, x in values.items() if x is not None}
    return numbers
