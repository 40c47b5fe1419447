"""Figures of teams under other priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from icmape.evaluation.robustness import SweepPoint
from icmape.plot.figures.style import TARGET, colours, explain, legend, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

COLUMNS = {"accuracy": ("accuracy", ".2f", "cividis"), "tau": ("stopping time τ (rounds)", ".1f", "cividis_r")}


def heat_maps(points: Sequence[SweepPoint], names: tuple[str, str], title: str, below: str, mark: str = "") -> Figure:
    """Accuracy and τ over two arguments; `names` are their labels, the first for rows."""
    down, right = points[0].changes
    rows, columns = (sorted({point.changes[name] for point in points}) for name in (down, right))
    figure, axes = new_figure(2, width=4.6, height=3.9)
    for axis, (column, (label, form, palette)) in zip(axes, COLUMNS.items(), strict=True):
        table = np.full((len(rows), len(columns)), np.nan)
        for point in points:
            table[rows.index(point.changes[down]), columns.index(point.changes[right])] = getattr(point, column)
        limits: dict[str, Any] = {"vmin": 0.5, "vmax": 1.0} if column == "accuracy" and np.nanmin(table) >= 0.5 else {}
        image = axis.imshow(table, cmap=palette, **limits)
        _write_cells(axis, image, table, form)
        axis.set_xticks(range(len(columns)), [f"{v:g}" for v in columns])
        axis.set_yticks(range(len(rows)), [f"{v:g}" for v in rows])
        axis.grid(False)
        figure.colorbar(image, ax=axis, label=label, shrink=0.8)
        axis.set(xlabel=names[1], ylabel=names[0], title=label)
    return explain(figure, title, below, mark)


def _write_cells(axis: Axes, image: AxesImage, table: np.ndarray, form: str) -> None:
    """Each number in its cell, in black or white, depending on the background."""
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            red, green, blue, _ = image.cmap(image.norm(value))
            dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5
            axis.text(
                column, row, format(value, form), ha="center", va="center", color="white" if dark else "0.15", size=9
            )


def lines(
    curves: Mapping[str, Sequence[SweepPoint]],
    name: str,
    delta: float,
    title: str,
    below: str,
    logarithmic: bool = False,
    mark: str = "",
    corner: str = "lower right",
) -> Figure:
    """Accuracy and τ over one argument, with 95 % intervals; the legend is in a corner of the first panel."""
    figure, axes = new_figure(2, height=3.4)
    for colour, (label, points) in zip(colours(len(curves)), curves.items(), strict=True):
        (argument,) = points[0].changes
        places = [point.changes[argument] for point in points]
        right, low, high = (
            np.array([getattr(p, c) for p in points]) for c in ("accuracy", "accuracy_low", "accuracy_high")
        )
        look: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 3.5, "capsize": 2, "linewidth": 1.3}
        axes[0].errorbar(places, right, yerr=[right - low, high - right], label=label, **look)
        errors = [1.96 * point.tau_error for point in points]
        axes[1].errorbar(places, [point.tau for point in points], yerr=errors, label=label, **look)
    axes[0].axhline(1 - delta, **TARGET)
    axes[0].set(ylabel="accuracy at the stop", ylim=(min(0.5, axes[0].get_ylim()[0]), 1.0))
    axes[1].set(ylabel="stopping time τ (rounds)", ylim=(0, None))
    for axis in axes:
        axis.set_xlabel(name)
        if logarithmic:
            axis.set_xscale("log")
    if len(curves) > 1:
        legend(axes[0], loc=corner)
    return explain(figure, title, below, mark)
