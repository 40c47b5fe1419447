"""The results of a sweep in one table: a row a run, and the means over seeds."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icmape.io import write_atomically
from icmape.sweeps.runs import read_result
from icmape.sweeps.spec import Run

NUMBERS = ("accuracy", "tau", "ece", "iterations", "seconds")


class Row(NamedTuple):
    """A team of a run."""

    run: str
    point: dict[str, Any]  # what varies, without the seed
    seed: int
    accuracy: float
    tau: float
    ece: float
    iterations: int
    seconds: float
    target: float
    fault: str  # what was not finite, if the seed failed


def rows_of(out: Path, runs: Sequence[Run]) -> list[Row]:
    """The rows of all runs that have a result."""
    rows = []
    for run in runs:
        result = read_result(run, out / run.name)
        if result is None:
            continue
        point = {name: value for name, value in run.point.items() if name != "seed"}
        for team in result["teams"]:
            measured = team["accuracy"], team["tau"], team["ece"]
            spent = result["iterations"], result["seconds"]
            fault = result["faults"].get(str(team["seed"]), "")
            rows.append(Row(run.name, point, team["seed"], *measured, *spent, 1 - team["delta"], fault))
    return rows


def write_table(out: Path, runs: Sequence[Run]) -> Path:
    """Write table.csv, a row a team, table.json, all results with their origins, and table.md with the means as well;
    returns the latter.
    """
    rows = rows_of(out, runs)
    results = [result for run in runs if (result := read_result(run, out / run.name)) is not None]
    write_atomically(out / "table.json", (json.dumps({"runs": results}, indent=1) + "\n").encode())
    varied = list(dict.fromkeys(name for row in rows for name in row.point))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["run", *varied, "seed", *NUMBERS, "fault"])
    for row in rows:
        writer.writerow([row.run, *(row.point.get(name, "") for name in varied), row.seed, *_numbers(row), row.fault])
    write_atomically(out / "table.csv", text.getvalue().encode())
    page = [f"# {len(runs)} runs, {sum(read_result(run, out / run.name) is not None for run in runs)} done", ""]
    page += ["## Means over seeds", "", *_means(rows, varied), "", "## All teams", "", *_all(rows, varied)]
    write_atomically(out / "table.md", ("\n".join(page) + "\n").encode())
    return out / "table.md"


def _numbers(row: Row) -> list[Any]:
    return [getattr(row, name) for name in NUMBERS]


def _means(rows: Sequence[Row], varied: Sequence[str]) -> list[str]:
    """By point, the fastest that meets its target in the mean first. Seeds that failed do not count."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if not row.fault:  # its team is that of before the fault
            groups.setdefault(tuple(str(row.point.get(name, "")) for name in varied), []).append(row)

    def order(item: tuple[tuple[Any, ...], list[Row]]) -> tuple[bool, float]:
        accuracy = _mean([row.accuracy for row in item[1]])
        meets = accuracy >= item[1][0].target
        return not meets, _mean([row.tau for row in item[1]]) if meets else -accuracy

    table = [[*varied, "seeds", "accuracy", "τ", "seconds"]]
    for point, group in sorted(groups.items(), key=order):
        columns = ([row.accuracy for row in group], [row.tau for row in group], [row.seconds for row in group])
        accuracy, tau, seconds = columns
        table.append(
            [*map(str, point), str(len(group)), _spread(accuracy, 3), _spread(tau, 2), f"{_mean(seconds):.0f}"]
        )
    return _markdown(table)


def _all(rows: Sequence[Row], varied: Sequence[str]) -> list[str]:
    table = [["run", *varied, "seed", "accuracy", "τ", "ECE", "iterations", "seconds", ""]]
    for row in rows:
        point = [str(row.point.get(name, "")) for name in varied]
        measured = [f"{row.accuracy:.4f}", f"{row.tau:.3f}", f"{row.ece:.4f}"]
        spent = [f"{row.iterations:,}", f"{row.seconds:.0f}"]
        fault = f"FAILED: {row.fault} not finite" if row.fault else ""
        table.append([row.run, *point, str(row.seed), *measured, *spent, fault])
    return _markdown(table)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _spread(values: Sequence[float], digits: int) -> str:
    """The mean, and the standard deviation of several values."""
    mean = _mean(values)
    if len(values) < 2:
        return f"{mean:.{digits}f}"
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def _markdown(table: Sequence[Sequence[str]]) -> list[str]:
    head, *rows = table
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def summary(counts: Mapping[str, Any], alive: int) -> str:
    """The state of a sweep in one line."""
    failed = f", {len(counts['failed'])} failed" if counts["failed"] else ""
    return f"{counts['done']} of {counts['runs']} runs done{failed}; {alive} workers"
