"""Workers that share the runs of a sweep by their folders alone: whoever locks a folder does its run.

The lock of a worker that dies is free, so that another goes on from the last checkpoint. No run is done twice to its
end, and none is begun for ever: one that kills its workers has failed after some `attempts`.
"""

import json
import logging
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from icmape.errors import UserError
from icmape.io import read_bounded, write_atomically
from icmape.json_text import parse
from icmape.learning.run import Progress
from icmape.locks import HeldError, only_writer
from icmape.sweeps import attempts
from icmape.sweeps.runs import do, read_result
from icmape.sweeps.spec import Run

log = logging.getLogger("icmape")

PLAN = "sweep.json"
FAILED = "failed.json"
LOOK_SECONDS = 1.0


def write_plan(out: Path, runs: list[Run]) -> None:
    """Write the runs of a sweep to its folder; raises `UserError` if it holds another sweep."""
    content = json.loads(json.dumps([run.to_dict() for run in runs]))
    path = out / PLAN
    if path.exists() and parse(read_bounded(path)) != content:
        raise UserError(f"{out} holds another sweep: choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(content, indent=1).encode() + b"\n")


def read_plan(out: Path) -> list[Run]:
    """The runs of the sweep in a folder."""
    try:
        return [Run.from_dict(values) for values in parse(read_bounded(out / PLAN))]
    except OSError as error:
        raise UserError(f"{out} holds no sweep: expected {out / PLAN}") from error
    except (ValueError, TypeError) as error:
        raise UserError(f"{out / PLAN} is no list of runs ({error})") from error


def worker_command(out: Path, code: Mapping[str, Collection[str]] | None = None) -> tuple[str, ...]:
    """The Python command of a worker of the sweep in this folder. `code` has the names of own code by flag."""
    flags = (word for flag, names in (code or {}).items() for name in names for word in (flag, name))
    return ("-m", "icmape.sweeps", str(out), *flags)


def work(out: Path, named: Collection[str] = ()) -> int:
    """Do free runs until none is left; returns how many this worker finished. Runs of other workers are waited for."""
    runs, finished = read_plan(out), 0
    while True:
        held = 0
        for run in sorted(runs, key=lambda run: attempts.killed(out / run.name)):  # what may kill a worker comes last
            if is_over(run, out):
                continue
            try:
                with only_writer(out / run.name, required=True):
                    if not is_over(run, out):
                        finished += _attempt(run, out / run.name, named)
            except HeldError:
                held += 1
        if not held:
            return finished
        time.sleep(LOOK_SECONDS)


def is_over(run: Run, out: Path) -> bool:
    """Whether a run has its result, or failed."""
    return read_result(run, out / run.name) is not None or (out / run.name / FAILED).exists()


def _attempt(run: Run, folder: Path, named: Collection[str]) -> bool:
    """Do a run. An error is written down and ends this run alone."""

    def tell(report: Progress) -> None:
        log.info("%s: %d of %d iterations, %.0f s left", run.name, report.iteration, report.iterations, report.left)

    try:
        attempts.begin(folder)
        if is_over(run, folder.parent):  # seen late: a network file system shows new files of others after a write
            return False
        log.info("%s: begins", run.name)
        do(run, folder, named, tell)
        log.info("%s: done", run.name)
        return True
    except Exception as error:
        log.error("%s: %s", run.name, error)
        reason = {"run": run.name, "error": f"{type(error).__name__}: {error}"}
        write_atomically(folder / FAILED, json.dumps(reason, indent=1).encode() + b"\n")
        return False
    finally:
        attempts.forget(folder)


def forget_failures(out: Path, runs: list[Run]) -> None:
    """Failed runs are tried again by the next workers."""
    for run in runs:
        (out / run.name / FAILED).unlink(missing_ok=True)


def states(out: Path, runs: list[Run]) -> dict[str, Any]:
    """How many runs are done and failed, and the names of the latter with their errors."""
    done = sum(read_result(run, out / run.name) is not None for run in runs)
    failed = {}
    for run in runs:
        path = out / run.name / FAILED
        if path.exists():
            failed[run.name] = str(parse(read_bounded(path)).get("error", ""))
    return {"done": done, "failed": failed, "runs": len(runs)}
