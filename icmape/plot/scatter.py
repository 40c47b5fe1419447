"""The figure of a comparison: accuracy against τ."""

import itertools
import math
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icmape.evaluation.methods import Comparison, Method
from icmape.evaluation.stop_curves import CurvePoint, joined, tau_at
from icmape.plot.labels import Box, Label, place_labels
from icmape.plot.training_curves import COLOURS

MARKERS = "osD^vPX*<>phd"  # thirteen, with six colours: no two methods look the same
MUTED = ("#5f6b73", "#8a7f70", "#7d7391", "#6d8a7a", "#94707a", "#808080")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 3)))
HUES = 6


class Window(NamedTuple):
    """The part of the plane that a panel shows."""

    left: float
    right: float
    bottom: float
    top: float

    def holds(self, tau: float, accuracy: float) -> bool:
        """Whether a point lies in it."""
        return self.left <= tau <= self.right and self.bottom <= accuracy <= self.top


def draw_comparison(comparison: Comparison, path: Path) -> Path:
    """Methods as points with error bars, baselines as lines; a second panel if methods crowd near the target."""
    import matplotlib

    matplotlib.use("Agg")
    with matplotlib.rc_context({"text.parse_math": False}):  # a $ in a name is no formula
        return _draw_comparison(comparison, path)


def _draw_comparison(comparison: Comparison, path: Path) -> Path:
    import matplotlib.pyplot as plt

    full, near = overview(comparison), close_up(comparison)
    if near is None:
        figure, axis = plt.subplots(figsize=(8.5, 6))
        panels = [(axis, full)]
    else:
        figure, axes = plt.subplots(1, 2, figsize=(14, 6.4), width_ratios=(1, 1.35))
        panels = [(axes[0], full), (axes[1], near)]
    figure.subplots_adjust(left=0.055 if near else 0.085, right=0.985, top=0.87, bottom=0.16, wspace=0.13)
    figure.suptitle(f"Accuracy against stopping time: {comparison.problem}", x=0.012, ha="left", fontsize=12)
    figure.text(0.012, 0.905, _how_to_read(near is not None), fontsize=9.5, color="#444444")
    words = textwrap.fill(_bars_explained(comparison), 250 if near else 135)
    figure.text(0.012, 0.02, words, fontsize=8, color="#666666")
    panels[0][0].set_ylabel("accuracy (share of right answers)")
    for axis, window in panels:
        _panel(axis, window, comparison, None if window is near else near)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def overview(comparison: Comparison) -> Window:
    """Window of all methods, and of the baselines up to the target."""
    ends = [method.mean("tau") + _tau_bar(method) for method in comparison.methods]
    for points in comparison.curves.values():
        at = tau_at(points, 1 - comparison.delta)
        ends.append(max(point.tau for point in points) if at is None else 1.15 * at)
    width = max(max(ends) - 1, 1.0)
    return Window(1 - 0.04 * width, 1 + 1.12 * width, 0.0, 1.03)


def close_up(comparison: Comparison) -> Window | None:
    """Window around the methods near the target, if there are several and they crowd in the overview."""
    target, delta, full = 1 - comparison.delta, comparison.delta, overview(comparison)
    near = [m for m in comparison.methods if m.mean("accuracy") >= target - 1.5 * delta]
    if not near:
        return None
    fastest = min(method.mean("tau") for method in near)
    near = [method for method in near if method.mean("tau") <= 2.5 * fastest]
    taus = [x for m in near for x in (m.mean("tau") - _tau_bar(m), m.mean("tau") + _tau_bar(m))]
    taus += [m.evaluation.tau for method in near for m in method.members]
    crossings = [tau_at(points, target) for points in comparison.curves.values()]
    farthest = max(taus) if len(near) > 1 else 1.25 * fastest  # a single team is shown with the baselines around it
    beside = [tau for tau in crossings if tau is not None and 0.5 * fastest <= tau <= farthest]
    taus += beside
    heights = [y for method in near for y in accuracy_bar(method)] + [target]
    heights += [m.evaluation.accuracy for method in near for m in method.members]
    if len(near) + len(beside) < 2 or max(taus) - min(taus) > 0.6 * (full.right - full.left):
        return None
    width = max(max(taus) - min(taus), 0.5)
    height = max(max(heights) - min(heights), 0.02)
    left, right = min(taus) - 0.18 * width, max(taus) + 0.18 * width
    return Window(left, right, min(heights) - 0.2 * height, max(heights) + 0.2 * height)


def accuracy_bar(method: Method) -> tuple[float, float]:
    """Ends of the vertical bar: ± a standard deviation over seeds, or the interval of a single team."""
    spread, mean = method.spread("accuracy"), method.mean("accuracy")
    return method.interval if spread is None else (mean - spread, mean + spread)


def _tau_bar(method: Method) -> float:
    """Half of the horizontal bar."""
    spread, error = method.spread("tau"), method.tau_error
    half = 1.96 * error if spread is None else spread
    return 0.0 if math.isnan(half) else half  # other methods' results may lack it


def _panel(axis: Any, window: Window, comparison: Comparison, near: Window | None) -> None:
    """One panel. Points inside `near` are drawn here too, but labelled in the other panel."""
    from matplotlib.ticker import MaxNLocator

    axis.set_xlim(window.left, window.right)
    axis.set_ylim(window.bottom, window.top)
    axis.set_xlabel("mean stopping time τ (rounds, the stop included)")
    axis.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10], integer=window.right - window.left > 5))
    axis.grid(alpha=0.25, linewidth=0.6)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    target = 1 - comparison.delta
    axis.axhline(target, color="black", linestyle="--", linewidth=1.1, zorder=2)
    pen = _Pen(axis)
    pen.note_line([window.left, window.right], [target, target], 0.6)
    pen.labels.append(Label(f"target {target:g}", pen.spots(window, [target] * 5), {"color": "black", "fontsize": 9}))
    for index, (name, points) in enumerate(comparison.curves.items()):
        pen.curve(name, joined(points), window, near, index)
    for index, method in enumerate(comparison.methods):
        pen.method(method, index, window, near)
    no_data = comparison.no_data_accuracy
    if no_data is not None and window.holds(1.0, no_data):
        axis.plot(1, no_data, marker="x", color="#444444", markersize=8, markeredgewidth=2, clip_on=False, zorder=5)
        pen.point_label("no data", 1.0, no_data, "#444444")
    if near is not None:
        _mark(axis, near)
        x, y = (near.left + near.right) / 2, near.bottom
        pen.labels.append(
            Label("see right", [pen.pixels(x, y)], {"color": "#444444", "fontsize": 9, "style": "italic"})
        )
        pen.note_box(near, 1.0)
    place_labels(axis, pen.labels, pen.covered)


class _Pen:
    """Draws on one axis and records what labels should not cover."""

    def __init__(self, axis: Any):
        self.axis = axis
        self.labels: list[Label] = []
        self.covered: list[tuple[Box, float]] = []

    def pixels(self, tau: float, accuracy: float) -> tuple[float, float]:
        """A point on the page."""
        x, y = self.axis.transData.transform((tau, accuracy))
        return float(x), float(y)

    def spots(self, window: Window, heights: list[float]) -> list[tuple[float, float]]:
        """Points of a line across the window where its label may stand."""
        width, count = window.right - window.left, len(heights)
        return [self.pixels(window.left + width * (i + 0.5) / count, y) for i, y in enumerate(heights)]

    def note_point(self, tau: float, accuracy: float, size: float, weight: float) -> None:
        """Keep labels off a square around a point."""
        x, y = self.pixels(tau, accuracy)
        self.covered.append((Box(x, y, x, y).grown(size), weight))

    def note_box(self, window: Window, weight: float) -> None:
        """Keep labels off a part of the plane."""
        self.covered.append(
            (Box(*self.pixels(window.left, window.bottom), *self.pixels(window.right, window.top)), weight)
        )

    def note_line(self, taus: list[float], accuracies: list[float], weight: float) -> None:
        """Keep labels off a line, sampled every few pixels where it runs through the panel."""
        frame = self.axis.get_window_extent()
        ends = np.array([self.pixels(*point) for point in zip(taus, accuracies, strict=True)])
        for start, end in itertools.pairwise(ends):
            steps = max(int(np.max(np.abs(end - start)) / 5), 1)
            points = start + (end - start) * np.arange(steps)[:, None] / steps
            for x, y in points[(points >= frame.min).all(axis=1) & (points <= frame.max).all(axis=1)]:
                self.covered.append((Box(x, y, x, y).grown(2.5), weight))

    def point_label(self, text: str, tau: float, accuracy: float, colour: str) -> None:
        """A label for a point."""
        self.labels.append(Label(text, [self.pixels(tau, accuracy)], {"color": colour, "fontsize": 9.5}))
        self.note_point(tau, accuracy, 10.0, 6.0)

    def curve(self, name: str, parts: list[list[CurvePoint]], window: Window, near: Window | None, index: int) -> None:
        """A baseline: muted lines, labelled inside the window and outside the other panel's; points that no line joins
        are dots.
        """
        colour, dash = MUTED[index % len(MUTED)], DASHES[index % len(DASHES)]
        alone = (
            {"marker": "+", "markersize": 8} if len(parts) == len(parts[0]) == 1 else {"marker": "o", "markersize": 4}
        )
        inside = []
        for part in parts:
            taus, accuracies = [p.tau for p in part], [p.accuracy for p in part]
            look = alone if len(part) == 1 else {}
            self.axis.plot(taus, accuracies, color=colour, linestyle=dash, linewidth=1.5, zorder=2, **look)
            self.note_line(taus, accuracies, 2.5)
            inside += [(t, a) for t, a in _dense(taus, accuracies) if window.holds(t, a)]
        if near is not None:
            apart = [(t, a) for t, a in inside if not near.holds(t, a)]
            inside = apart or inside
        if inside:
            anchors = [self.pixels(*point) for point in inside[:: max(len(inside) // 15, 1)]]
            self.labels.append(Label(name, anchors, {"color": colour, "fontsize": 8.5, "style": "italic"}))

    def method(self, method: Method, index: int, window: Window, near: Window | None) -> None:
        """A method: its mean with bars, its seeds as small points; hollow if it misses the target.

        Lines show where its teams would stand with other stops.
        """
        colour, marker = COLOURS[index % HUES], MARKERS[index % len(MARKERS)]
        for curve in method.curves:
            taus, accuracies = [p.tau for p in curve.points], [p.accuracy for p in curve.points]
            self.axis.plot(taus, accuracies, color=colour, linewidth=1.1, alpha=0.55, zorder=2.5)
            self.note_line(taus, accuracies, 1.0)
        tau, accuracy, (low, high) = method.mean("tau"), method.mean("accuracy"), accuracy_bar(method)
        half = _tau_bar(method)
        look = {"color": colour, "linewidth": 1.3, "zorder": 4}
        self.axis.plot([tau - half, tau + half], [accuracy, accuracy], **look)
        self.axis.plot([tau, tau], [low, high], **look)
        if len(method.members) > 1:
            dots = [(m.evaluation.tau, m.evaluation.accuracy) for m in method.members]
            self.axis.scatter(
                *zip(*dots, strict=True), s=16, marker=marker, color=colour, alpha=0.45, linewidths=0, zorder=3
            )
            for dot in dots:
                self.note_point(*dot, 4.0, 4.0)
        fill = colour if accuracy >= method.target else "white"
        size = 11 if marker in "*PX" else 8.5
        self.axis.plot(
            tau, accuracy, marker=marker, markersize=size, color=colour, markerfacecolor=fill, markeredgecolor=colour,
            markeredgewidth=1.6, zorder=5,
        )  # fmt: skip
        self.note_line([tau - half, tau + half], [accuracy, accuracy], 5.0)
        self.note_line([tau, tau], [low, high], 5.0)
        elsewhere = near is not None and near.holds(tau, accuracy)
        if window.holds(tau, accuracy) and not elsewhere:
            self.point_label(method.name, tau, accuracy, colour)
        elif window.holds(tau, accuracy):
            self.note_point(tau, accuracy, 10.0, 6.0)


def _dense(taus: list[float], accuracies: list[float], steps: int = 12) -> list[tuple[float, float]]:
    """A line with points between its points."""
    points = [(taus[0], accuracies[0])]
    pairs = list(zip(taus, accuracies, strict=True))
    for (t, a), (to_t, to_a) in itertools.pairwise(pairs):
        points += [(t + (to_t - t) * i / steps, a + (to_a - a) * i / steps) for i in range(1, steps + 1)]
    return points


def _mark(axis: Any, near: Window) -> None:
    """The frame of the other panel."""
    from matplotlib.patches import Rectangle

    corner, width, height = (near.left, near.bottom), near.right - near.left, near.top - near.bottom
    axis.add_patch(Rectangle(corner, width, height, fill=False, edgecolor="#444444", linewidth=0.9, zorder=3))


def _how_to_read(two: bool) -> str:
    panels = "Left: everything. Right: the framed part. " if two else ""
    return (
        f"{panels}Higher is more often right, further left is sooner: the upper left corner is best. "
        "Hollow markers miss the target."
    )


def _bars_explained(comparison: Comparison) -> str:
    several = any(len(method.members) > 1 for method in comparison.methods)
    text = "Bars: 95 % intervals of one team's accuracy (Wilson) and τ"
    if several:
        text += "; for several seeds ± one standard deviation, with each seed as a small point"
    text += f". {comparison.episodes:,} fresh worlds per team, seed {comparison.seed}."
    if any(method.curves for method in comparison.methods):
        text += " Lines through markers: the same teams with their stops moved."
    if comparison.curves:
        worlds = f"{comparison.curve_episodes:,} worlds a point unless computed exactly"
        text += f" Thin lines, names in italics: baselines, {worlds}."
    if any(len(joined(points)) > 1 for points in comparison.curves.values()):
        text += " Dots of a baseline that no line joins: it has no stop in between."
    return text
