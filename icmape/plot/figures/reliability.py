"""Reliability diagrams: accuracy against confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from icmape.evaluation.calibration import Bin, Calibration
from icmape.evaluation.intervals import wilson_interval
from icmape.plot.figures.style import colours, explain, legend, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def reliability(panels: Mapping[str, Mapping[str, Calibration]], title: str, below: str, mark: str = "") -> Figure:
    """A diagram for every panel, with a curve for every calibration, and bin sizes below."""
    figure, axes = new_figure(len(panels), 2, height=2.6, height_ratios=[3, 1])
    top, bottom = axes[: len(panels)], axes[len(panels) :]
    for upper, lower, (name, curves) in zip(top, bottom, panels.items(), strict=True):
        upper.plot([0, 1], [0, 1], color="black", linewidth=1, linestyle="--")
        for index, (colour, (label, calibration)) in enumerate(zip(colours(len(curves)), curves.items(), strict=True)):
            _curve(upper, calibration, f"{label}: ECE {calibration.ece:.4f}", colour)
            width = 0.1 / (len(curves) + 0.3)
            places = [bin_.low + (index + 0.65) * width for bin_ in calibration.bins]
            lower.bar(places, [bin_.size for bin_ in calibration.bins], width, color=colour)
        upper.set(xlim=(0, 1), ylim=(0, 1), ylabel="share of right answers", title=name)
        lower.set(xlim=(0, 1), xlabel="confidence", ylabel="answers", yscale="log")
        upper.tick_params(labelbottom=False)
        legend(upper, loc="upper left")
    return explain(figure, title, below, mark)


def _curve(axis: Any, calibration: Calibration, label: str, colour: Any) -> None:
    filled = [bin_ for bin_ in calibration.bins if bin_.size]
    look: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 3.5, "linewidth": 1.2, "capsize": 2}
    reach = np.array([_reach(bin_) for bin_ in filled]).reshape(-1, 2).T
    axis.errorbar(
        [bin_.confidence for bin_ in filled], [bin_.accuracy for bin_ in filled], yerr=reach, label=label, **look
    )


def _reach(bin_: Bin) -> tuple[float, float]:
    """Lengths of the 95 % interval down and up; answers of one episode are correlated."""
    share, half = bin_.accuracy or 0.0, 1.96 * (bin_.error or 0.0)
    low, high = wilson_interval(round(share * bin_.size), bin_.size)
    return min(max(share - low, half), share), min(max(high - share, half), 1 - share)
