"""The counts: as JSON, and as a table in a page of the documentation."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from icmape.io import circumstances, write_atomically

COLUMNS = {
    "inputs": "inputs",
    "refused": "refused",
    "harmless": "harmless",
    "traceback": "tracebacks",
    "hang": "hangs",
    "wrong": "wrongly accepted",
    "memory": "out of memory",
}
"""Kind of outcome → its column."""
START, END = "<!-- counts: written by make fuzz -->", "<!-- end of counts -->"

Outcomes = Counter[tuple[str, str, str]]
"""Target, mutation and kind of outcome → inputs."""


def rows(outcomes: Outcomes) -> list[dict[str, Any]]:
    """A row for each target and mutation."""
    places = dict.fromkeys((target, mutation) for target, mutation, _ in sorted(outcomes))
    return [_row(outcomes, target, mutation) for target, mutation in places]


def _row(outcomes: Outcomes, target: str, mutation: str | None) -> dict[str, Any]:
    counts = Counter[str]()
    for (of, by, kind), count in outcomes.items():
        if of == target and mutation in (None, by):
            counts[kind] += count
            counts["inputs"] += count
    named = {"target": target} | ({} if mutation is None else {"mutation": mutation})
    return {**named, **{column: counts[kind] for kind, column in COLUMNS.items()}}


def markdown(outcomes: Outcomes, seconds: float, seed: int) -> str:
    """A table with a row for each target, and their sum."""
    targets = [_row(outcomes, target, None) for target in dict.fromkeys(target for target, _, _ in outcomes)]
    total = {"target": "**all**"} | {column: sum(row[column] for row in targets) for column in COLUMNS.values()}
    lines = [f"| target | {' | '.join(COLUMNS.values())} |", f"|---|{'---|' * len(COLUMNS)}"]
    lines += [
        f"| {row['target']} | {' | '.join(f'{row[c]:,}' for c in COLUMNS.values())} |" for row in [*targets, total]
    ]
    about = circumstances()
    lines += [
        "",
        f"Seed {seed}, {seconds / 60:.0f} min on {about['device']}, icmape {about['icmape']}, {about['date']}.",
    ]
    return "\n".join(lines)


def write_results(outcomes: Outcomes, seconds: float, seed: int, out: Path | None, page: Path | None) -> None:
    """Write the counts where they are asked for."""
    if out is not None:
        content = {"seed": seed, "seconds": round(seconds), "counts": rows(outcomes), "provenance": circumstances()}
        write_atomically(out, json.dumps(content, indent=1).encode() + b"\n")
    if page is not None:
        text = page.read_text()
        before, _, rest = text.partition(START)
        after = rest.partition(END)[2]
        table = markdown(outcomes, seconds, seed)
        write_atomically(page, f"{before}{START}\n\n{table}\n\n{END}{after}".encode())
