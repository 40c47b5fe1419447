"""An episode on a map: one panel a round, in rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from icmape.reporting.drawing import Drawing, probability, verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_IN_A_ROW = 4
WORLD = "the world, never shown"
SIDE = 2.4  # inches of a panel of the strip
LARGE = 4.6  # of the two panels of a frame


class Panels(Drawing):
    """First the world that nobody sees, then every round. A subclass says what is on a panel."""

    @abstractmethod
    def draw_world(self, axis: Axes, scale: float = 1.0) -> Any:
        """The world; returns what its colour bar is made of. `scale` is the panel's size, 1 in a strip."""

    @abstractmethod
    def draw_round(self, axis: Axes, number: int, scale: float = 1.0) -> Any:
        """What is known in a round, in the same way."""

    @abstractmethod
    def legend(self) -> list[Any]:
        """Handles of all that the panels have in common."""

    @abstractmethod
    def bar_titles(self) -> tuple[str, str]:
        """What the colours of the world and of the rounds mean."""

    def strip(self) -> Figure:
        """Rows of at most four panels, equally long as far as possible."""
        from matplotlib.figure import Figure

        count = self.played.rounds + 1
        rows = math.ceil(count / MOST_IN_A_ROW)
        columns = math.ceil(count / rows)
        handles = self.legend()
        width = max(columns * SIDE, 2 * SIDE) + 1.7
        figure = Figure(figsize=(width, rows * (SIDE + 0.35) + 0.75), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        world = self.draw_world(axes[0])
        axes[0].set_title(WORLD, fontsize=11)
        for number in range(self.played.rounds):
            known = self.draw_round(axes[number + 1], number)
            axes[number + 1].set_title(self.title(number), fontsize=11, **self._weight(number))
        for axis in axes[count:]:
            axis.set_visible(False)
        for shown, title in zip((known, world), reversed(self.bar_titles()), strict=True):
            size: dict[str, Any] = {"aspect": 14 * min(rows, 2), "shrink": min(1.0, 2 / rows), "anchor": (0.0, 1.0)}
            bar = figure.colorbar(shown, ax=axes, location="right", fraction=0.03, pad=0.01, **size)
            bar.set_label(title, fontsize=9)
            bar.ax.tick_params(labelsize=8)
        figure.legend(
            handles=handles, loc="outside lower center", ncols=_legend_columns(len(handles), width), fontsize=9,
            frameon=False, handletextpad=0.5, columnspacing=1.6,
        )  # fmt: skip
        return figure

    @property
    def frame_size(self) -> tuple[float, float]:
        """Two panels beside each other, and the legend below."""
        return 2 * LARGE + 1.7, LARGE + 1.15

    def frame(self, figure: Figure, number: int) -> None:
        """The world on the left, the round on the right; everything stays in its place from frame to frame."""
        width, height = self.frame_size
        bottom, gap = 0.78, 0.8
        titles = self.bar_titles()
        for index in range(2):
            left = 0.12 + index * (LARGE + gap)
            axis = figure.add_axes((left / width, bottom / height, LARGE / width, LARGE / height))
            shown = self.draw_round(axis, number, LARGE / SIDE) if index else self.draw_world(axis, LARGE / SIDE)
            axis.set_title(self.title(number) if index else WORLD, fontsize=12, **self._weight(number if index else -1))
            colours = figure.add_axes(((left + LARGE + 0.06) / width, bottom / height, 0.12 / width, LARGE / height))
            bar = figure.colorbar(shown, cax=colours)
            bar.ax.tick_params(labelsize=8)
            bar.set_label(titles[index], fontsize=9, labelpad=4)
        handles = self.legend()
        figure.legend(
            handles=handles, loc="lower center", ncols=_legend_columns(len(handles), width), fontsize=9.5,
            frameon=False, handletextpad=0.5, columnspacing=1.6,
        )  # fmt: skip

    def title(self, number: int) -> str:
        """Of a round's panel."""
        said = f"round {number}, p = {probability(self.played.confidence[number])}"
        return f"{said}: {verdict(self.played)}" if self._last(number) else said

    def _weight(self, number: int) -> dict[str, Any]:
        return {"fontweight": "bold"} if self._last(number) else {}

    def _last(self, number: int) -> bool:
        return number == self.played.rounds - 1


def _legend_columns(entries: int, width: float) -> int:
    """Rows of about the same length that fit the width, at some 1.4 inches an entry."""
    rows = math.ceil(entries / max(int(width / 1.4), 1))
    return math.ceil(entries / rows)
