"""Output of `icmape data years` and `icmape data fit`."""

from typing import Any

import numpy as np
from rich.table import Table

from icmape.plot.terminal import out, say
from icmape.zoo.hotspot.data.source import read_data
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.hotspot.hyperparameters import DIGITS, Choice
from icmape.zoo.hotspot.region import place_name
from icmape.zoo.hotspot.statistics import YearsSummary, YearSummary

COLUMNS = (
    "Year", "", "Raw Data Points", "Stations", "Cells with Data", "Avg. Var.", "Avg. Sigma", "No-Data Accuracy"
)  # fmt: skip


def print_years(problem: Hotspot, summary: YearsSummary) -> None:
    """The table, and what it comes to."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "" else "right")
    for row in summary.years:
        table.add_row(*_texts(problem, row))
    out.print(table, "")
    for line in _remarks(problem, summary):
        say(line)


def years_markdown(problem: Hotspot, summary: YearsSummary) -> str:
    """The same as Markdown."""
    align = ["---" if name == "" else "---:" for name in COLUMNS]
    rows = [list(COLUMNS), align, *(_texts(problem, row) for row in summary.years)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", *(f"- {remark}" for remark in _remarks(problem, summary))]) + "\n"


def years_numbers(problem: Hotspot, summary: YearsSummary) -> dict[str, Any]:
    """The same as plain numbers."""
    rows = []
    for row in summary.years:
        why = {"reason": _reason(problem)} if row.variance is None else {}
        rows.append(_rounded({**row._asdict(), "sigma": row.sigma, **why}))
    constant = None if summary.constant is None else problem.coordinates[summary.constant].round(4).tolist()
    groups = {name: _over(summary.of(training)) for name, training in (("training", True), ("test", False))}
    return {"years": rows, **{name: group for name, group in groups.items() if group}, "constant_answer": constant}


def _over(rows: list[YearSummary]) -> dict[str, Any]:
    """Mean and range over years."""
    if not rows:
        return {}
    variances = [row.variance for row in rows if row.variance is not None]
    right = [row.no_data_accuracy for row in rows if row.no_data_accuracy is not None]
    return {
        "years": len(rows),
        "variance": round(float(np.mean(variances)), 4),
        "variance_range": [round(min(variances), 4), round(max(variances), 4)],
        "no_data_accuracy": round(float(np.mean(right)), 4) if right else None,
    }


def _rounded(numbers: dict[Any, Any]) -> dict[Any, Any]:
    """Round to four decimals; sampling noise is larger."""
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in numbers.items()}


def _texts(problem: Hotspot, row: YearSummary) -> list[str]:
    counts = [f"{number:,}" for number in (row.readings, row.stations, row.cells)]
    start = [str(row.year), "training" if row.training else "test", *counts]
    if row.variance is None or row.sigma is None:
        return [*start, _reason(problem), "", ""]
    right = "" if row.no_data_accuracy is None else f"{row.no_data_accuracy:.2f}"
    return [*start, f"{row.variance:.3f}", f"{row.sigma:.3f}", right]


def _reason(problem: Hotspot) -> str:
    """Why a year has no fields."""
    return f"under {problem.fit} readings"


def _remarks(problem: Hotspot, summary: YearsSummary) -> list[str]:
    """What the columns mean, and their averages."""
    lines = [
        f"Avg. Var.: posterior variance of log(1 + mg/L) over the {problem.actions} valid cells, for fields fitted to "
        f"{problem.fit} readings with length {problem.length:g}, variance {problem.variance:g}, noise {problem.noise:g}"
    ]
    if problem.data is not None:
        every = len(read_data(problem.data, problem.characteristics, problem.average))
        outside = every - problem.fields.history.values.shape[0]
        lines.append(f"{outside:,} of {every:,} readings lie outside the region (--latitudes, --longitudes)")
    if problem.synthetic is not None:
        lines.append(f"synthetic measurements (seed {problem.synthetic}), not real ones")
    for name, training in (("training", True), ("test", False)):
        if rows := summary.of(training):
            over = _over(rows)
            low, high = over["variance_range"]
            lines.append(
                f"{name} years: {over['variance']:.3f} on average, {low:.3f} to {high:.3f}"
                + ("" if over["no_data_accuracy"] is None else f"; no-data accuracy {over['no_data_accuracy']:.2f}")
            )
    if summary.constant is not None:
        lines.append(
            f"No-data accuracy: how often {place_name(problem.coordinates[summary.constant])}, the best constant "
            f"answer of the training years, is one of the {problem.k} highest cells"
        )
    return lines


# -- kernels


def print_choice(problem: Hotspot, choice: Choice) -> None:
    """What was chosen and how, what it gives, and how to use it."""
    search, years = choice.search, choice.variances
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("", "most likely", "chosen", "how"):
        table.add_column(name, justify="right" if name in ("most likely", "chosen") else "left", overflow="fold")
    for name, how in _how(choice).items():
        likely, chosen = (getattr(kernel, name) for kernel in (choice.likely.kernel, choice.kernel))
        table.add_row(name, f"{likely:.4g}", f"{chosen:.4g}", how)
    out.print(table, "")
    say(
        f"likelihood: {search.subsets} subsets of {search.readings} readings from each of {len(choice.learned)} years "
        f"({min(choice.learned)} to {max(choice.learned)}); {choice.likely.likelihood:.4f} nats a reading"
    )
    for name in choice.likely.kernel.bounded:
        parameter = "ratio of noise to variance" if name == "ratio" else name
        say(f"careful: the most likely {parameter} lies at the bound of the search: the readings do not determine it")
    low, high = min(years.values()), max(years.values())
    say(
        f"average posterior variance over {problem.actions} valid cells, fields fitted to {problem.fit} readings: "
        f"{choice.variance:.3f} ({low:.3f} to {high:.3f} by year)"
    )
    say(f"settings: {settings(choice)}")


def settings(choice: Choice) -> str:
    """To be pasted behind a preset."""
    return " ".join(
        f"--problem.{name} {getattr(choice.kernel, name):.{DIGITS}g}" for name in ("length", "variance", "noise")
    )


def choice_numbers(choice: Choice) -> dict[str, Any]:
    """The same as plain numbers."""
    kernels = {
        name: {part: float(f"{getattr(kernel, part):.{DIGITS}g}") for part in ("length", "variance", "noise")}
        for name, kernel in (("most_likely", choice.likely.kernel), ("chosen", choice.kernel))
    }
    return {
        **kernels,
        "how": _how(choice),
        "log_likelihood": round(choice.likely.likelihood, 4),
        "search": choice.search._asdict(),
        "years": list(choice.learned),
        "posterior_variance": round(choice.variance, 4),
        "posterior_variance_by_year": _rounded(choice.variances),
        "settings": settings(choice),
    }


def _how(choice: Choice) -> dict[str, str]:
    """What decided each number."""
    search = choice.search
    ratio = "given" if search.ratio is not None else "of maximum likelihood"
    length = "given, held fixed" if search.length is not None else "maximum likelihood"
    if search.target is None:
        noise = "maximum likelihood" if search.ratio is None else f"{search.ratio:.3g} of the variance, as given"
        return {"length": length, "variance": "maximum likelihood", "noise": noise}
    return {
        "length": length if search.length is not None else f"{length}, held fixed",
        "variance": f"solved for: an average posterior variance of {search.target:g}",
        "noise": f"{choice.likely.kernel.ratio:.3g} of the variance: the ratio {ratio}, held fixed",
    }
