"""An episode of any problem: one column per round, with rows for actions, posterior and confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from icmape.plot.drawing import Drawing
from icmape.plot.training_curves import COLOURS
from icmape.problem import TopK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_VALUES = 40  # of a part of the answer, above which its posterior is not drawn
TRUTH = "#E3001B"
STOP_CELL = "black"
CELL = 0.3  # inches of a row of the table
AT_ONCE = 20  # columns of a frame


class Timeline(Drawing):
    """Actions, observations, posterior and confidence. Subclasses name them."""

    @property
    def caption(self) -> str:
        """Explanation of the table's cells."""
        return "cells: an action and what it returned; red: the truth"

    # -- pictures

    def strip(self) -> Figure:
        """Three rows over the same columns: the table, the posterior of every part of the answer, the confidence."""
        from matplotlib.figure import Figure

        parts = self._parts()
        heights = [self.played.problem.agents * CELL, *[_height(p.shape[1]) for p in parts], 1.3]
        width = max(6.5, 1.6 + self.played.rounds * min(0.55, max(0.3, 9 / self.played.rounds)))
        figure = Figure(figsize=(width, sum(heights) + 0.25 * len(heights) + 0.6), layout="constrained")
        axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        last = self.played.rounds - 1
        self._table(axes[0], last)
        self._head(axes[0], last)
        shown = None
        for index, (axis, rows) in enumerate(zip(axes[1:-1], parts, strict=True)):
            shown = self._heat(axis, rows, self._truths(index), self.part(index) if len(parts) > 1 else "answer")
        if shown is not None:
            tall = sum(heights[1:-1])
            bar = figure.colorbar(shown, ax=axes[1:-1], fraction=0.03, pad=0.01, aspect=max(4, 7 * tall))
            bar.set_label(f"{self.played.posterior} posterior" if tall > 1.2 else "posterior", fontsize=9)
            bar.ax.tick_params(labelsize=8)
        self._confidence(axes[-1], last)
        figure.supxlabel(self._explained, fontsize=9, color="#555555")
        return figure

    @property
    def frame_size(self) -> tuple[float, float]:
        """Table and confidence on the left, bars on the right."""
        table = self.played.problem.agents * CELL + 2.8
        bars = sum(_height(rows.shape[1]) + 0.35 for rows in self._parts()) + 0.8
        return 10.5, max(table, bars, 3.6)

    def frame(self, figure: Figure, number: int) -> None:
        """Columns up to a round, and the posterior of that round as bars."""
        parts = self._parts()
        height = self.frame_size[1]
        figure.text(0.5, 0.1 / height, self._explained, fontsize=9, color="#555555", ha="center")
        edges = {"left": 0.08, "right": 0.98, "top": 1 - 0.4 / height, "bottom": 0.75 / height, "wspace": 0.16}
        halves = figure.add_gridspec(1, 3, **edges)
        left, right = (halves[0, :2], halves[0, 2]) if parts else (halves[0, :], None)
        table = left.subgridspec(2, 1, height_ratios=[self.played.problem.agents * CELL, 1.6], hspace=0.08)
        top = figure.add_subplot(table[0])
        first = max(0, number + 1 - AT_ONCE)
        self._table(top, number, first)
        self._head(top, number)
        self._confidence(figure.add_subplot(table[1], sharex=top), number)
        top.set_xlim(first - 0.6, min(self.played.rounds, first + AT_ONCE) - 0.4)
        top.tick_params(labelbottom=False)
        if right is not None:
            bars = right.subgridspec(len(parts), 1, hspace=0.3)
            for index, rows in enumerate(parts):
                axis = figure.add_subplot(bars[index])
                self._bars(axis, rows[number], self._truths(index))
                axis.set_ylabel(self.part(index) if len(parts) > 1 else "answer", fontsize=9)
                axis.tick_params(labelbottom=index == len(parts) - 1)
            axis.set_xlabel(f"{self.played.posterior} posterior", fontsize=9)

    @property
    def _explained(self) -> str:
        return f"{self.caption}; hollow: the answer would be wrong"

    def _head(self, axis: Axes, number: int) -> None:
        axis.set_title(self.title(number), fontsize=11, fontweight="bold" if self.is_last(number) else "normal")

    def _truths(self, index: int) -> np.ndarray:
        """True values of a part of the answer."""
        truths = np.atleast_1d(self.played.episode.hypothesis)
        return truths if isinstance(self.played.problem.hypotheses, TopK) else truths[index : index + 1]

    def _parts(self) -> list[np.ndarray]:
        """Posterior of every part of the answer (rounds, values), if it can be shown."""
        probabilities = self.played.probabilities
        parts = (
            [probabilities]
            if probabilities.ndim == 2
            else list(np.moveaxis(probabilities.reshape(len(probabilities), -1, probabilities.shape[-1]), 1, 0))
        )
        return parts if parts[0].shape[1] <= MOST_VALUES and len(parts) <= 12 else []

    def _table(self, axis: Axes, number: int, first: int = 0) -> None:
        """Agents' actions in a range of rounds, coloured, with the observations."""
        from matplotlib.patches import Rectangle

        actions, agents = self.played.episode.actions, self.played.problem.agents
        last = self.played.rounds - 1
        for column in range(first, number + 1):
            for agent in range(agents):
                action = int(actions[column, agent])
                stops = action == self.played.problem.actions
                if column == last and not stops:
                    continue  # the agent did not stop
                colour = STOP_CELL if stops else COLOURS[action % len(COLOURS)]
                look: dict[str, Any] = {"color": colour, "alpha": 1.0 if stops else 0.35, "linewidth": 0}
                axis.add_patch(Rectangle((column - 0.47, agent - 0.45), 0.94, 0.9, **look))
                returned = self.mark(agent, column) if column < number else ""
                text = "stop" if stops else f"{self.short(action)} {returned}".strip()
                axis.text(
                    column, agent, text, ha="center", va="center_baseline", fontsize=8 if len(text) < 5 else 7,
                    color="white" if stops else "black",
                )  # fmt: skip
        axis.set_xlim(-0.6, last + 0.6)
        axis.set_ylim(agents - 0.5, -0.5)
        axis.set_yticks(range(agents), [f"agent {agent + 1}" for agent in range(agents)], fontsize=9)
        _bare(axis)

    def _heat(self, axis: Axes, rows: np.ndarray, truths: np.ndarray, name: str) -> Any:
        """One part's posterior: a column a round, the true value framed."""
        from matplotlib.patches import Rectangle

        look: dict[str, Any] = {"vmin": 0, "vmax": 1, "interpolation": "nearest", "origin": "lower"}
        shown = axis.imshow(rows.T, aspect="auto", cmap="Greys", **look)
        frame: dict[str, Any] = {"fill": False, "edgecolor": TRUTH, "linewidth": 1.6, "clip_on": False}
        for truth in truths:
            axis.add_patch(Rectangle((-0.5, int(truth) - 0.5), len(rows), 1, **frame))
        self._value_ticks(axis, rows.shape[1])
        axis.set_ylabel(name, fontsize=9)
        _bare(axis)
        return shown

    def _bars(self, axis: Axes, probabilities: np.ndarray, truths: np.ndarray) -> None:
        """One part's posterior in one round."""
        colours = [TRUTH if index in truths else "#777777" for index in range(len(probabilities))]
        axis.barh(range(len(probabilities)), probabilities, color=colours, height=0.75)
        axis.set_xlim(0, 1)
        axis.set_ylim(-0.6, len(probabilities) - 0.4)
        axis.tick_params(labelsize=8)
        self._value_ticks(axis, len(probabilities))
        for tick, label in zip(axis.get_yticks(), axis.get_yticklabels(), strict=True):
            if tick in truths:
                label.set(color=TRUTH, fontweight="bold")
        axis.grid(axis="x", alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)

    def _value_ticks(self, axis: Axes, count: int) -> None:
        ticks = range(0, count, max(1, count // 10))
        axis.set_yticks(ticks, [self.value(index) for index in ticks], fontsize=8)

    def _round(self, column: float, _: object) -> str:
        """Name of a column: rounds count from 1, and the stop is none."""
        last = self.played.rounds - 1
        return str(round(column) + 1) if 0 <= column < last else "stop" if round(column) == last else ""

    def _confidence(self, axis: Axes, number: int) -> None:
        """Confidence of the answer; hollow where the answer is wrong."""
        from matplotlib.ticker import MaxNLocator

        rounds = np.arange(number + 1)
        values, correct = self.played.confidence[: number + 1], self.played.correct[: number + 1]
        axis.plot(rounds, values, color=COLOURS[0], linewidth=1.6, zorder=2)
        faces = [COLOURS[0] if right else "white" for right in correct]
        axis.scatter(rounds, values, c=faces, edgecolors=COLOURS[0], s=28, linewidths=1.4, zorder=3)
        target = 1 - self.played.delta
        axis.axhline(target, color="black", linestyle="--", linewidth=1, zorder=1)
        inside = axis.get_yaxis_transform()
        axis.text(0.005, target + 0.02, f"target {target:g}", transform=inside, fontsize=8, va="bottom")
        axis.set_ylim(0, 1.12)
        axis.set_yticks([0, 0.5, 1])
        axis.set_xlim(-0.6, self.played.rounds - 0.4)
        axis.set_ylabel("confidence", fontsize=9)
        axis.set_xlabel("round: its choices, and what was known before them", fontsize=9)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.xaxis.set_major_formatter(self._round)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)


def _height(values: int) -> float:
    """Inches of a part of the answer."""
    return min(max(0.17 * values, 0.4), 3.0)


def _bare(axis: Axes) -> None:
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
