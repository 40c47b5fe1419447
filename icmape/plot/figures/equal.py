"""Methods at equal accuracy: accuracy against τ as stops are moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icmape.evaluation.equal_accuracy import reading
from icmape.evaluation.stop_curves import StopCurve
from icmape.plot.figures.style import TARGET, explain, legend, new_figure, strokes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BESIDE = 0.6  # share of the errors 1-target that the close-up shows above and twice below the target


def equal_accuracy(
    curves: Mapping[str, Sequence[StopCurve]], target: float, title: str, below: str, mark: str = ""
) -> Figure:
    """A line for each team, in the colour of its method; a marker where the team really stands; the close-up beside."""
    figure, axes = new_figure(2, width=5.6, height=4.2)
    for axis in axes:
        for stroke, (method, teams) in zip(strokes(len(curves)), curves.items(), strict=True):
            for place, curve in enumerate(teams):
                label = method if place == 0 else None
                look: dict[str, Any] = {**stroke, "label": label, "alpha": 1 if len(teams) == 1 else 0.7}
                alone: dict[str, Any] = {"marker": "+"} if len(curve.points) == 1 else {}
                axis.plot(
                    [point.tau for point in curve.points], [point.accuracy for point in curve.points], **look, **alone
                )
                if curve.own:
                    axis.plot(
                        curve.own.tau, curve.own.accuracy, "o", color=stroke["color"], markersize=5,
                        markeredgecolor="white", markeredgewidth=0.7, zorder=4,
                    )  # fmt: skip
        axis.axhline(target, **TARGET)
        axis.set_xlabel("stopping time τ (rounds, the stop included)")
    axes[0].set_ylabel("accuracy")
    axes[0].set(ylim=(0, 1.02), xlim=(1, None))
    _close_up(axes[1], curves, target)
    legend(axes[1], loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return explain(figure, title, below, mark)


def _close_up(axis: Axes, curves: Mapping[str, Sequence[StopCurve]], target: float) -> None:
    """The crossings of the target, without methods that need more than three times the fewest rounds."""
    taus = [tau for teams in curves.values() if (tau := reading(teams).tau) is not None]
    axis.set_ylim(target - 2 * BESIDE * (1 - target), target + BESIDE * (1 - target))
    if taus:
        shown = [tau for tau in taus if tau - 1 <= 3 * (min(taus) - 1)]
        margin = max(0.15 * (max(shown) - min(shown)), 0.5)
        axis.set_xlim(max(1, min(shown) - 2 * margin), max(shown) + margin)
