"""The table of a comparison, on a terminal and in Markdown, and the files of a comparison."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from icmape.errors import printable
from icmape.evaluation.equal_accuracy import Compared, Reading
from icmape.evaluation.methods import Comparison, Method, baseline_key, pairs
from icmape.evaluation.stop_curves import CurvePoint, tau_at
from icmape.io import write_atomically
from icmape.plot.items import DASH, number
from icmape.plot.progress import clock
from icmape.plot.scatter import draw_comparison


class Row(NamedTuple):
    """One line of the table, as text."""

    method: str
    seeds: str
    accuracy: str
    interval: str
    tau: str
    at_target: str
    gap: str
    rounds: str
    forced: str
    ece: str
    wall_time: str
    steps: str
    note: str


LEFT = {"method", "note"}
PARTS = (
    ("method", "accuracy", "interval", "tau", "rounds", "forced"),
    ("method", "at_target", "gap"),
    ("method", "seeds", "ece", "wall_time", "steps", "note"),
)
"""Columns of the tables on a narrow terminal."""


def headings(comparison: Comparison) -> Row:
    """Headings of the columns."""
    at_target, first = f"τ at {1 - comparison.delta:g}", next(iter(comparison.at_target), "the first")
    gap = f"less {first}"
    return Row(
        "method", "seeds", "accuracy", "95 %", "τ", at_target, gap, "rounds", "forced", "ECE", "time", "steps", "note"
    )


def rows(comparison: Comparison) -> list[Row]:
    """Methods, then the answer without data, then the baselines where they reach the target."""
    target, equal = 1 - comparison.delta, comparison.at_target
    baselines = [
        _baseline_row(name, points, target, _equal_cells(equal.get(baseline_key(name))))
        for name, points in comparison.curves.items()
    ]
    paired = pairs(comparison.methods)
    methods = [
        _method_row(m, [str(pair) for pair in paired if pair.method == m.name], _equal_cells(equal.get(m.name)))
        for m in comparison.methods
    ]
    return [*methods, _no_data_row(comparison), *baselines]


def _equal_cells(row: Compared | None) -> tuple[str, str]:
    """τ at the target, and the gap to the first method."""
    return (DASH, DASH) if row is None else (in_words(row.reading), DASH if row.gap is None else str(row.gap))


def in_words(reading: Reading) -> str:
    """τ at the target with half of its interval, or why there is none."""
    if reading.tau is not None:
        return number(reading.tau, ".2f", reading.half or None)  # computed ones have no error
    if not reading.movable:
        return "its stop cannot be moved"
    if reading.reached:
        return f"{reading.reached} of {reading.teams} reach it"
    return f"at most {reading.best:.3f}"


def _method_row(method: Method, paired: list[str], equal: tuple[str, str]) -> Row:
    low, high = method.interval
    seconds, steps = method.seconds, method.environment_steps
    return Row(
        method=method.name,
        seeds=str(len(method.members)),
        accuracy=number(method.mean("accuracy"), ".3f", method.spread("accuracy")),
        interval=f"{low:.3f}–{high:.3f}",
        tau=number(method.mean("tau"), ".2f", method.spread("tau")),
        at_target=equal[0],
        gap=equal[1],
        rounds=f"{method.mean('rounds'):.2f}",
        forced=_known(method.mean("forced"), ".1%"),
        ece=_known(method.mean("ece"), ".4f"),
        wall_time=DASH if seconds is None else clock(seconds),
        steps=DASH if steps is None else _short(steps),
        note="; ".join([*method.verdicts, *paired, *filter(None, [method.remark])]),
    )


def _no_data_row(comparison: Comparison) -> Row:
    accuracy = comparison.no_data_accuracy
    shown = DASH if accuracy is None else f"{accuracy:.3f}"
    blank = Row(*[DASH] * len(Row._fields))
    return blank._replace(method="no data", accuracy=shown, tau="1.00", rounds="0.00", note="the best constant answer")


def _baseline_row(name: str, points: Sequence[CurvePoint], target: float, equal: tuple[str, str]) -> Row:
    """The point where a baseline's curve reaches the target, or else its best point."""
    tau = tau_at(points, target)
    accuracy, note = target, "baseline"
    if len(points) == 1:  # its stopping rule has no parameter
        accuracy, tau = points[0].accuracy, points[0].tau
    elif tau is None:
        best = max(points, key=lambda point: point.accuracy)
        accuracy, tau, note = best.accuracy, best.tau, f"baseline; at most {best.accuracy:.3f}"
    blank = Row(*[DASH] * len(Row._fields))
    return blank._replace(
        method=name,
        accuracy=f"{accuracy:.3f}",
        tau=f"{tau:.2f}",
        at_target=equal[0],
        gap=equal[1],
        rounds=f"{tau - 1:.2f}",
        note=note,
    )


def _known(value: float, form: str) -> str:
    return DASH if math.isnan(value) else format(value, form)


def _short(count: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f}"


def title(comparison: Comparison) -> str:
    """Problem, target and worlds of a comparison."""
    return (
        f"{comparison.problem}, target {1 - comparison.delta:g}: {comparison.episodes:,} fresh worlds per team, "
        f"seed {comparison.seed}"
    )


def legend(comparison: Comparison) -> str:
    """Meaning of the columns."""
    text = (
        "accuracy, τ: mean over seeds ± their standard deviation; 95 %: Wilson's interval on the answers of all seeds "
        "together; τ counts the stop round, rounds count data; forced: episodes that ran to the horizon; time: wall "
        "time of the training run, which its seeds share; steps: rounds played in training by one seed."
    )
    if comparison.at_target:
        text += f" {explain_equal(1 - comparison.delta)}"
    if comparison.curves:
        text += (
            f" A baseline's row is where its curve ({comparison.curve_episodes:,} worlds unless computed exactly, "
            "straight lines between points) reaches the target, or its best."
        )
    return text


def explain_equal(target: float) -> str:
    """Meaning of τ at the target."""
    return (
        f"τ at {target:g}: the stop is moved (its threshold, level or length) until {target:g} of the answers are "
        "right, in worlds on which no stop was set; ± and brackets: 95 % intervals, from resampled worlds, for several "
        "seeds also from their spread; differences are paired where methods were played in the same worlds."
    )


def render(comparison: Comparison, width: int) -> Group:
    """The table for a terminal, in two parts if it is narrow."""
    full = _table(comparison, Row._fields)
    parts = [full] if Measurement.get(_WIDE, _WIDE.options, full).maximum <= width else []
    parts = parts or [_table(comparison, part) for part in PARTS]
    above, below = Text(title(comparison), style="bold"), Text(legend(comparison), style="dim")
    return Group(above, "", *(piece for part in parts for piece in (part, "")), below)


_WIDE = Console(width=10_000)


def _table(comparison: Comparison, columns: tuple[str, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
    for name in columns:
        heading = getattr(headings(comparison), name)
        table.add_column(heading, justify="left" if heading in LEFT else "right", no_wrap=heading not in LEFT)
    count = len(comparison.methods)
    for index, row in enumerate(rows(comparison)):
        style = "dim" if index >= count else "red" if comparison.methods[index].fails else ""
        cells = [Text(printable(getattr(row, name))) for name in columns]
        table.add_row(*cells, style=style, end_section=index in (count - 1, count))
    return table


def markdown(comparison: Comparison) -> str:
    """The table as a Markdown page."""
    named = headings(comparison)
    lines = [f"# {title(comparison)}", "", "| " + " | ".join(named) + " |"]
    lines.append("|" + "".join("---|" if heading in LEFT else "---:|" for heading in named))
    for row in rows(comparison):
        lines.append("| " + " | ".join(_cell(cell) for cell in row) + " |")
    return "\n".join([*lines, "", legend(comparison), "", "![accuracy against τ](comparison.png)", ""])


def _cell(text: str) -> str:
    """A text from anywhere as a cell of a Markdown table."""
    return printable(text).replace("|", "\\|").replace("<", "&lt;")


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the figure, the numbers and the page."""
    paths = [folder / f"comparison.{kind}" for kind in ("png", "json", "md")]
    folder.mkdir(parents=True, exist_ok=True)
    draw_comparison(comparison, paths[0])
    write_atomically(paths[1], json.dumps(comparison.to_dict(), indent=2).encode() + b"\n")
    write_atomically(paths[2], markdown(comparison).encode())
    return paths
