"""Drawings of hotspot monitoring: the field with all samples, and the posterior."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Array, Key

from icmape.evaluation.single import Played
from icmape.plot.drawing import Ground
from icmape.plot.panels import WORLD, Panels, legend_mark, rimmed
from icmape.problem import Problem
from icmape.zoo.hotspot.field_maps import (
    DEVIATION,
    DEVIATION_UNIT,
    FIELD,
    WIDTH,
    bar_of_concentration,
    concentration_colours,
    degrees,
    draw_cells,
    encircle,
    field_legend,
    panel_ratio,
)
from icmape.zoo.hotspot.hotspot import UNIT, Hotspot, HotspotWorld
from icmape_agent.answers import chance_of_highest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

POSTERIOR = "magma_r"
COLUMNS = 3  # rounds beside each other in the strip
IN_A_LINE = 6  # readings in a line of text


class HotspotDrawing(Panels):
    """Two maps per round: the true field with the samples, and the probability of each cell to be among the highest."""

    side: ClassVar[float] = 4.0
    large: ClassVar[float] = 5.6

    def __init__(self, played: Played):
        super().__init__(played)
        assert isinstance(played.problem, Hotspot)
        self.hotspot: Hotspot = played.problem
        self.concentration = concentrations(played.world)
        self.readings = np.asarray(played.episode.observations)[: played.rounds].astype(float)  # rounds agents repeats

    # -- words

    def place(self, agent: int, number: int) -> str:
        """The cell of its last sample."""
        return self.action(int(self.played.episode.actions[number - 1, agent])) if number > 0 else ""

    def seen(self, agent: int, number: int) -> str:
        """The reading there, or the mean of several."""
        repeats = self.readings.shape[-1]
        counted = f" (mean of {repeats})" if repeats > 1 else ""
        return f"{self.mean_reading(agent, number):.2f} mg/L{counted}" if number > 0 else ""

    def mean_reading(self, agent: int, number: int) -> float:
        """Mean of an agent's last readings when it decides in a round."""
        return float(self.readings[number, agent].mean())

    def samples(self, number: int) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """Agents by the cell that they sampled just before a round, and the same for all earlier samples."""
        return self._agents_by_cell(range(number - 1, number)), self._agents_by_cell(range(number - 1))

    def _agents_by_cell(self, rounds: Iterable[int]) -> dict[int, list[int]]:
        by_cell: dict[int, set[int]] = defaultdict(set)
        for past in (past for past in rounds if past >= 0):
            for agent, cell in enumerate(self.played.episode.actions[past].tolist()):
                by_cell[cell].add(agent)
        return {cell: sorted(agents) for cell, agents in by_cell.items()}

    # -- places

    def ground(self) -> Ground:
        """The region, with its highest cells."""
        grid, cells = self.hotspot.grid, self.hotspot.cells
        return Ground(
            rows=grid.rows,
            columns=grid.columns,
            cells=cells.tolist(),
            truths=[(int(cells[index]), "among the highest") for index in np.atleast_1d(self.played.world.hypothesis)],
            shows=chance_of_highest(self.hotspot.k),
            reading=UNIT,
            ratio=self.ratio * grid.columns / grid.rows,
        )

    def spot(self, agent: int, number: int) -> tuple[int, int] | None:
        """The cell of its last sample."""
        return divmod(self._sampled(agent, number), self.hotspot.columns) if number > 0 else None

    def readings_at(self, agent: int, number: int) -> list[tuple[int, float]]:
        """What it read there, on average."""
        return [(self._sampled(agent, number), self.mean_reading(agent, number))] if number > 0 else []

    def _sampled(self, agent: int, number: int) -> int:
        return int(self.hotspot.cells[int(self.played.episode.actions[number - 1, agent])])

    # -- pictures

    @property
    def ratio(self) -> float:
        """That of the region."""
        return panel_ratio(self.hotspot.grid)

    @property
    def below(self) -> float:
        """Room for the readings, and for the legend."""
        return 0.5 + 0.18 * self._lines

    @property
    def _lines(self) -> int:
        """Lines of readings."""
        return math.ceil(self.hotspot.agents / IN_A_LINE)

    def draw_world(self, axis: Axes, number: int, scale: float = 1.0) -> Any:
        """The field, with what was sampled before a round is decided."""
        shown = self._map(axis, self.concentration, cmap=FIELD, norm=self._colours())
        encircle(axis, self.hotspot, self.played.world.hypothesis, scale)
        self._mark_samples(axis, number, scale)
        axis.set_xlabel(self._read(number), fontsize=8 * scale**0.3, labelpad=3)
        return shown

    def draw_round(self, axis: Axes, number: int, scale: float = 1.0) -> Any:
        """Every cell's probability when a round is decided, and the answer by then."""
        shown = self._map(axis, self.played.probabilities[number], cmap=POSTERIOR, vmin=0.0, vmax=1.0)
        encircle(axis, self.hotspot, self.played.world.hypothesis, scale)
        latitude, longitude = self.hotspot.coordinates[int(self.played.decisions[number])]
        look: dict[str, Any] = {"marker": "D", "color": "black", "markerfacecolor": "none", "zorder": 7}
        rimmed(axis, longitude, latitude, scale, markersize=7.0, **look)
        axis.set_xlabel(f"answer {self.answer(self.played.decisions[number])}", fontsize=8 * scale**0.3, labelpad=3)
        return shown

    def _map(self, axis: Axes, values: np.ndarray, **look: Any) -> Any:
        shown = draw_cells(axis, self.hotspot, values, **look)
        axis.set(xticks=[], yticks=[])
        return shown

    def _mark_samples(self, axis: Axes, number: int, scale: float) -> None:
        """Numbers of agents where they sampled: the last samples on white, earlier ones small."""
        from matplotlib.patheffects import Normal, Stroke

        last, earlier = self.samples(number)
        rim = [Stroke(linewidth=1.6, foreground="black"), Normal()]
        white = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "black", "linewidth": 0.7}
        earlier_only = {cell: agents for cell, agents in earlier.items() if cell not in last}
        self._numbers(axis, earlier_only, fontsize=5.5 * scale**0.7, color="white", path_effects=rim, zorder=5)
        self._numbers(axis, last, fontsize=6.5 * scale**0.7, color="black", bbox=white, zorder=6)

    def _numbers(self, axis: Axes, agents_by_cell: Mapping[int, list[int]], **look: Any) -> None:
        for cell, agents in agents_by_cell.items():
            latitude, longitude = self.hotspot.coordinates[cell]
            place: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontweight": "bold"}
            axis.text(longitude, latitude, agent_numbers(agents), **place, **look)

    def _read(self, number: int) -> str:
        """The last reading of every agent."""
        if number == 0:
            return "nothing sampled yet" + "\n" * (self._lines - 1)
        texts = [f"{agent + 1}: {self.mean_reading(agent, number):.2f}" for agent in range(self.hotspot.agents)]
        lines = ["   ".join(texts[start : start + IN_A_LINE]) for start in range(0, len(texts), IN_A_LINE)]
        return "read  " + "\n".join(lines) + "  mg/L"

    def strip(self) -> Figure:
        """Rounds side by side, the field above the posterior; in several bands if there are many."""
        from matplotlib.figure import Figure

        rounds = self.played.rounds
        bands = math.ceil(rounds / COLUMNS)
        columns = math.ceil(rounds / bands)
        width = max(columns, 2) * self.side + 1.1
        height = bands * (2 * self.side * self.ratio + 0.5 + 0.15 * self._lines) + 0.4
        figure = Figure(figsize=(width, height), layout="compressed")
        axes = figure.subplots(2 * bands, columns, squeeze=False)
        for number in range(bands * columns):
            band, column = divmod(number, columns)
            above, under = axes[2 * band, column], axes[2 * band + 1, column]
            if number >= rounds:
                above.set_visible(False)
                under.set_visible(False)
                continue
            world, posterior = self.draw_world(above, number), self.draw_round(under, number)
            above.set_title(self.title(number), fontsize=11, **self._weight(number))
            if column == 0:
                above.set_ylabel(WORLD, fontsize=9)
                under.set_ylabel(f"{self.played.posterior} posterior", fontsize=9)
        for shown, title, row in zip((world, posterior), self.bar_titles(), axes, strict=False):
            self.bar(figure, shown, title, ax=row, location="right", fraction=0.03, pad=0.01)
        self._add_legend(figure, width, loc="outside lower center", fontsize=9)
        return figure

    def bar(self, figure: Figure, shown: Any, title: str, **place: Any) -> Any:
        """A colour bar; that of concentrations has its own ticks."""
        if title == UNIT:
            return bar_of_concentration(figure, shown, **place)
        return super().bar(figure, shown, title, **place)

    def bar_titles(self) -> tuple[str, str]:
        """Concentrations, and the posterior."""
        return UNIT, chance_of_highest(self.hotspot.k)

    def legend(self) -> list[Any]:
        """All marks."""
        return [
            legend_mark(label="last sample, by agent", marker="$1$", markersize=6, color="black"),
            legend_mark(label="earlier ones", marker="$1$", markersize=5, markerfacecolor="white", color="#777777"),
            *field_legend(self.hotspot),
            legend_mark(label="answer", color="black", marker="D", markersize=8, markerfacecolor="none"),
        ]

    def _colours(self) -> Normalize:
        return concentration_colours(float(self.concentration.max()))

    @classmethod
    def field(cls, problem: Problem, world: Any, key: Key[Array, ""]) -> Figure:
        """The field, and the standard deviation of readings."""
        assert isinstance(problem, Hotspot)
        return field_figure(problem, world)


def concentrations(world: HotspotWorld) -> np.ndarray:
    """The field in mg/L."""
    return np.expm1(np.maximum(np.asarray(world.mean, float), 0.0))


def field_figure(problem: Hotspot, world: HotspotWorld) -> Figure:
    """A world: its field, and the deviation of readings."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2 * WIDTH + 1.8, WIDTH * panel_ratio(problem.grid) + 0.75), layout="compressed")
    left, right = figure.subplots(1, 2, sharey=True)
    heights = concentrations(world)
    shown = draw_cells(left, problem, heights, cmap=FIELD, norm=concentration_colours(float(heights.max())))
    bar_of_concentration(figure, shown, ax=left, fraction=0.04, pad=0.02)
    deviation = draw_cells(
        right, problem, np.asarray(world.deviation), cmap=DEVIATION, vmin=0.0, vmax=float(problem.cap)
    )
    figure.colorbar(deviation, ax=right, fraction=0.04, pad=0.02).set_label(DEVIATION_UNIT, fontsize=9)
    year = problem.fields.history.years[int(world.year)]
    kind = "" if problem.synthetic is None else "synthetic "
    for axis, title in ((left, f"a {kind}field of {year}"), (right, "standard deviation of its readings")):
        encircle(axis, problem, np.asarray(world.hypothesis))
        degrees(axis, labels_left=axis is left)
        axis.set_title(title, fontsize=11)
    figure.legend(handles=field_legend(problem), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def agent_numbers(agents: list[int]) -> str:
    """Numbers from 1, runs of three or more as 1-4."""
    parts: list[list[int]] = []
    for agent in agents:
        if parts and agent == parts[-1][-1] + 1:
            parts[-1].append(agent)
        else:
            parts.append([agent])
    return ",".join(
        f"{run[0] + 1}-{run[-1] + 1}" if len(run) > 2 else ",".join(str(agent + 1) for agent in run) for run in parts
    )
