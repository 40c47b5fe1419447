"""Plots and tables of a team under other priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icmape.evaluation.robustness import Sweep, SweepPoint
from icmape.plot.items import Plot, Table
from icmape.plot.sweep_charts import heat_maps, lines


def sweep_plot(
    name: str, title: str, sweep: Sweep, curves: Mapping[str, Sequence[SweepPoint]], delta: float, mark: str = ""
) -> Plot:
    """A grid for two arguments (of the first curve), lines for one."""
    first = next(iter(curves.values()))
    words = [sweep.labels.get(argument, argument.replace("_", " ")) for argument in sweep.axes]
    below = f"{first[0].episodes:,} fresh worlds a point, one team"
    if len(words) == 2:
        return Plot(name, title, heat_maps(first, (words[0], words[1]), delta, title, below, mark))
    return Plot(name, title, lines(curves, words[0], delta, title, below, sweep.logarithmic, mark))


def sweep_table(name: str, title: str, points: Sequence[SweepPoint]) -> Table:
    """Every point of a sweep."""
    arguments = list(points[0].changes)
    rows = [
        [
            *(str(point.changes[a]) for a in arguments),
            f"{point.accuracy:.4f}",
            f"{point.accuracy_low:.4f}–{point.accuracy_high:.4f}",
            f"{point.tau:.3f}",
            f"{point.tau_error:.3f}",
            f"{point.ece:.4f}",
            f"{point.episodes:,}",
        ]
        for point in points
    ]
    headings = [*arguments, "accuracy", "95 %", "τ", "standard error", "ECE", "worlds"]
    return Table(name, title, headings, rows, on_page=False)
