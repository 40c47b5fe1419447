"""Charts of teams under other priors, and of methods as their stops are moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icmape.evaluation.equal_accuracy import reading
from icmape.evaluation.robustness import SweepPoint
from icmape.evaluation.stop_curves import StopCurve, joined
from icmape.plot.charts import Axis, Curves, Grid, Heat, Panel, Series, method_strokes
from icmape.plot.team_charts import TAU

BESIDE = 0.6  # share of the errors 1-target that the close-up shows above and twice below the target
NORMAL = 1.96

EVERY = Axis(TAU, 1.0)


def heat_maps(
    points: Sequence[SweepPoint], names: tuple[str, str], delta: float, title: str, below: str, mark: str = ""
) -> Heat:
    """Accuracy and τ over two arguments; `names` are their labels, the first for rows."""
    down, right = points[0].changes
    rows, columns = (sorted({point.changes[name] for point in points}) for name in (down, right))
    found = {(point.changes[down], point.changes[right]): point for point in points}

    def table(column: str) -> list[list[float | None]]:
        return [[getattr(found.get((row, across)), column, None) for across in columns] for row in rows]

    grids = [
        Grid("accuracy", table("accuracy"), ".2f", 1 - delta),
        Grid(TAU, table("tau"), ".1f"),
    ]
    return Heat(title, below, mark, rows, columns, names, grids)


def lines(
    curves: Mapping[str, Sequence[SweepPoint]],
    name: str,
    delta: float,
    title: str,
    below: str,
    logarithmic: bool = False,
    mark: str = "",
) -> Curves:
    """Accuracy and τ over one argument, with 95 % intervals."""
    accuracy, tau = [], []
    for stroke, (label, points) in zip(method_strokes(list(curves)), curves.items(), strict=True):
        (argument,) = points[0].changes
        places = [float(point.changes[argument]) for point in points]
        right = [(x, point.accuracy) for x, point in zip(places, points, strict=True)]
        ends = [(point.accuracy_low, point.accuracy_high) for point in points]
        accuracy.append(Series(label, right, *stroke, marked=True, ends=ends))
        stops = [(x, point.tau) for x, point in zip(places, points, strict=True)]
        reach = [(point.tau - NORMAL * point.tau_error, point.tau + NORMAL * point.tau_error) for point in points]
        tau.append(Series(label, stops, *stroke, marked=True, ends=reach))
    lowest = min(min(low for low, _ in one.ends) for one in accuracy)
    x = Axis(name, log=logarithmic)
    panels = [
        Panel(x, Axis("accuracy at the stop", min(0.5, lowest), 1.0, percent=True), accuracy, target=1 - delta),
        Panel(x, Axis(TAU, 0.0), tau),
    ]
    return Curves(title, below, mark, panels, target_label=f"target {100 * (1 - delta):g} %")


def equal_accuracy(
    curves: Mapping[str, Sequence[StopCurve]], target: float, title: str, below: str, mark: str = "", axis: Axis = EVERY
) -> Curves:
    """A line for each team, in the colour of its method; a dot where the team really stands; a close-up beside.

    The axis begins at an answer without readings.
    """
    series: list[Series] = []
    for (colour, dash), (method, teams) in zip(method_strokes(list(curves)), curves.items(), strict=True):
        for place, curve in enumerate(teams):
            for part, points in enumerate(_measured(curve)):
                series.append(Series(method, points, colour, dash, faint=len(teams) > 1, named=place == part == 0))
            if curve.own:
                own = f"{method} with its own stop"
                series.append(Series(own, [(curve.own.tau, curve.own.accuracy)], colour, shape="dots", named=False))
    whole = Panel(axis, Axis("accuracy", 0.0, 1.0, percent=True), series, "every stop", target)
    return Curves(
        title, below, mark, [whole, _close_up(series, curves, target, axis)], target_label=f"target {100 * target:g} %"
    )


def _measured(curve: StopCurve) -> list[list[tuple[float, float]]]:
    """The points of a curve in the parts that lines join; without points that are alone, unless all are."""
    parts = [[(point.tau, point.accuracy) for point in part] for part in joined(curve.points)]
    return [part for part in parts if len(part) > 1] or [[point for part in parts for point in part]]


def _close_up(series: Sequence[Series], curves: Mapping[str, Sequence[StopCurve]], target: float, axis: Axis) -> Panel:
    """The crossings of the target, without methods that need more than three times the fewest rounds."""
    taus = [tau for teams in curves.values() if (tau := reading(teams).tau) is not None]
    low, high = target - 2 * BESIDE * (1 - target), target + BESIDE * (1 - target)
    left, right, first = None, None, axis.low or 0.0
    if taus:
        shown = [tau for tau in taus if tau - first <= 3 * (min(taus) - first)]
        margin = max(0.15 * (max(shown) - min(shown)), 0.5)
        left, right = max(first, min(shown) - 2 * margin), max(shown) + margin
    x = Axis(axis.label, left, right)
    return Panel(x, Axis("accuracy, close-up", low, high, percent=True), series, "where they cross the target", target)
