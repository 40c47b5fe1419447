"""An episode on a map: one panel per round."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from icmape.plot.drawing import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_IN_A_ROW = 4
WORLD = "the world (hidden)"


class Panels(Drawing):
    """The hidden world, then every round. A subclass draws the panels."""

    side: ClassVar[float] = 2.4  # inches of a panel's width in the strip
    large: ClassVar[float] = 4.6  # width of the two panels of a frame

    @property
    def ratio(self) -> float:
        """A panel's height by its width."""
        return 1.0

    @property
    def below(self) -> float:
        """Inches below the panels of a frame."""
        return 0.78

    @abstractmethod
    def draw_world(self, axis: Axes, number: int, scale: float = 1.0) -> Any:
        """Draw the world in a round; returns the image for the colour bar. `scale` is 1 in a strip."""

    @abstractmethod
    def draw_round(self, axis: Axes, number: int, scale: float = 1.0) -> Any:
        """Draw the posterior of a round, in the same way."""

    @abstractmethod
    def legend(self) -> list[Any]:
        """Handles of the common legend."""

    @abstractmethod
    def bar_titles(self) -> tuple[str, str]:
        """Titles of the colour bars of the world and of the rounds."""

    def strip(self) -> Figure:
        """Rows of at most four panels."""
        from matplotlib.figure import Figure

        count = self.played.rounds + 1
        rows = math.ceil(count / MOST_IN_A_ROW)
        columns = math.ceil(count / rows)
        width = max(columns * self.side, 2 * self.side) + 1.7
        figure = Figure(figsize=(width, rows * (self.side * self.ratio + 0.35) + 0.75), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        world = self.draw_world(axes[0], self.played.rounds - 1)
        axes[0].set_title(WORLD, fontsize=11)
        for number in range(self.played.rounds):
            posterior = self.draw_round(axes[number + 1], number)
            axes[number + 1].set_title(self.title(number), fontsize=11, **self._weight(number))
        for axis in axes[count:]:
            axis.set_visible(False)
        for shown, title in zip((posterior, world), reversed(self.bar_titles()), strict=True):
            size: dict[str, Any] = {"aspect": 14 * min(rows, 2), "shrink": min(1.0, 2 / rows), "anchor": (0.0, 1.0)}
            self.bar(figure, shown, title, ax=axes, location="right", fraction=0.03, pad=0.01, **size)
        self._add_legend(figure, width, loc="outside lower center", fontsize=9)
        return figure

    @property
    def frame_size(self) -> tuple[float, float]:
        """Two panels, and the legend below."""
        return 2 * self.large + 1.7, self.large * self.ratio + self.below + 0.37

    def frame(self, figure: Figure, number: int) -> None:
        """The world on the left, the round on the right, at fixed positions."""
        width, height = self.frame_size
        bottom, tall, gap = self.below / height, self.large * self.ratio / height, 0.8
        for index, title in enumerate(self.bar_titles()):
            left = 0.12 + index * (self.large + gap)
            axis = figure.add_axes((left / width, bottom, self.large / width, tall))
            draw = self.draw_round if index else self.draw_world
            shown = draw(axis, number, self.large / self.side)
            axis.set_title(self.title(number) if index else WORLD, fontsize=12, **self._weight(number if index else -1))
            colours = figure.add_axes(((left + self.large + 0.06) / width, bottom, 0.12 / width, tall))
            self.bar(figure, shown, title, cax=colours)
        self._add_legend(figure, width, loc="lower center", fontsize=9.5)

    def bar(self, figure: Figure, shown: Any, title: str, **place: Any) -> Any:
        """A colour bar."""
        bar = figure.colorbar(shown, **place)
        bar.set_label(title, fontsize=9, labelpad=4)
        bar.ax.tick_params(labelsize=8)
        return bar

    def _add_legend(self, figure: Figure, width: float, **look: Any) -> None:
        handles = self.legend()
        columns = _legend_columns(len(handles), width)
        figure.legend(handles=handles, ncols=columns, frameon=False, handletextpad=0.5, columnspacing=1.6, **look)

    def _weight(self, number: int) -> dict[str, Any]:
        return {"fontweight": "bold"} if self.is_last(number) else {}


def rimmed(axis: Axes, x: float | int, y: float | int, scale: float, *, markersize: float, **look: Any) -> None:
    """A mark with a white rim; it may reach over the edge."""
    from matplotlib.patheffects import Normal, Stroke

    width = (2.0 if look["marker"] == "x" else 1.3) * scale**0.5
    (mark,) = axis.plot(
        x, y, markersize=markersize * scale**0.7, markeredgewidth=width, clip_on=False, linestyle="", **look
    )
    mark.set_path_effects([Stroke(linewidth=2 * width, foreground="white"), Normal()])


def legend_mark(**look: Any) -> Any:
    """A legend handle without a line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="", **{"color": "#555555", **look})


def _legend_columns(entries: int, width: float) -> int:
    """Columns of a legend of this width, at 1.4 inches per entry."""
    rows = math.ceil(entries / max(int(width / 1.4), 1))
    return math.ceil(entries / rows)
