"""Accuracy and stopping time of all methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from icmape.plot.figures.style import GREY, TARGET, colours, explain, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Bar(NamedTuple):
    """A method's teams in one kind of worlds: a value for each seed."""

    accuracy: Sequence[float]
    tau: Sequence[float]


class Line(NamedTuple):
    """A value to compare with."""

    accuracy: float | None
    tau: float | None


def performance(
    bars: Mapping[str, Mapping[str, Bar]],
    lines: Mapping[str, Line],
    delta: float,
    title: str,
    below: str,
    mark: str = "",
) -> Figure:
    """Bars by method, and by kind of worlds within a method; points are seeds, whiskers one standard deviation."""
    kinds = list(dict.fromkeys(kind for row in bars.values() for kind in row))
    figure, axes = new_figure(2, width=5.4, height=2.0 + 0.34 * max(len(bars), 3) * max(1, len(kinds) / 2), sharey=True)
    thick = 0.8 / len(kinds)
    for axis, name in zip(axes, ("accuracy", "tau"), strict=True):
        for offset, (kind, colour) in enumerate(zip(kinds, colours(len(kinds)), strict=True)):
            for place, row in enumerate(bars.values()):
                if kind not in row:
                    continue
                values = np.array(getattr(row[kind], name))
                at = place + (offset - (len(kinds) - 1) / 2) * thick
                spread = values.std(ddof=1) if len(values) > 1 else 0.0
                axis.barh(at, values.mean(), thick * 0.9, color=colour, alpha=0.75, label=kind if place == 0 else None)
                axis.errorbar(values.mean(), at, xerr=spread, color="black", capsize=2, linewidth=1)
                axis.plot(values, [at] * len(values), "o", color="black", markersize=2.5)
        for style, (label, line) in zip(("-.", ":", (0, (5, 1)), (0, (1, 1))), lines.items(), strict=False):
            value = getattr(line, name)
            if value is not None:
                axis.axvline(value, color=GREY, linestyle=style, linewidth=1.3, label=f"{label} ({value:.3g})")
    axes[0].axvline(1 - delta, **TARGET, label=f"target {1 - delta:g}")
    axes[0].set_yticks(range(len(bars)), list(bars))
    axes[0].set_ylim(max(len(bars), 3) - 0.5, -0.5)
    axes[0].set(xlabel="accuracy at the stop", xlim=(0, 1.02))
    axes[1].set(xlabel="stopping time τ (rounds, the stop included)", xlim=(0, None))
    for axis in axes:
        axis.grid(axis="y", visible=False)
    shown = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    axes[1].legend(shown.values(), shown.keys(), loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
    return explain(figure, title, below, mark)
