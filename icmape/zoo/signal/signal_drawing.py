"""Drawings of source localization: the field, the posterior, paths, windows, hits and stops."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from icmape.evaluation.single import Played
from icmape.plot.drawing import Ground
from icmape.plot.panels import Panels, legend_mark, rimmed
from icmape.problem import Problem
from icmape.zoo.signal.signal import STAY, Signal, SignalWorld

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AGENTS = ("#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442")  # red and blue are the source's and the distractor's
MARKERS = "os^Dv"
SOURCE, DISTRACTOR = "#E3001B", "#0057D9"
POSTERIOR, FIELD = "Greys", "viridis"
RING: dict[str, Any] = {"marker": "o", "markersize": 10, "markerfacecolor": "none", "markeredgewidth": 2.0}
"""Hidden things, in a legend."""


class SignalDrawing(Panels):
    """The posterior as a heat map, with the agents' paths."""

    def __init__(self, played: Played):
        super().__init__(played)
        problem = played.problem
        assert isinstance(problem, Signal)
        self.signal: Signal = problem
        own_index = np.arange(problem.agents) if problem.information == "shared-positions" else 0
        observations = played.episode.observations
        agents = np.arange(problem.agents)
        self.positions = np.asarray(observations.positions)[: played.rounds, agents, own_index].astype(
            int
        )  # rounds agents 2
        self.windows = np.asarray(observations.window)[: played.rounds].astype(float)  # rounds agents rows columns
        self.clean = clean_field(problem, played.world)

    # -- words

    def doing(self, action: int) -> str:
        """A move, or to stay."""
        return "stay" if action == STAY else super().doing(action)

    def place(self, agent: int, number: int) -> str:
        """Row and column, counted from 1."""
        row, column = self.positions[number, agent]
        return f"({row + 1}, {column + 1})"

    def seen(self, agent: int, number: int) -> str:
        """A hit and where, or the largest reading."""
        if number == 0 and not self.signal.observe_start:
            return ""
        if agent == self.signal.detectors:
            cells = self.signal.window**2
            return f"{self.windows[number, agent].max():.2f}{f' (highest of {cells})' if cells > 1 else ''}"
        return "hit" if self.hits(agent, number) else "nothing"

    def hits(self, agent: int, number: int) -> list[tuple[int, int]]:
        """Cells that a detector registered in a round."""
        corner = self.positions[number, agent] - self.signal.window // 2
        if agent == self.signal.detectors:
            return []
        cells = corner + np.argwhere(self.windows[number, agent] > 0)
        return [(row, column) for row, column in cells.tolist()]

    # -- places

    def ground(self) -> Ground:
        """The grid, with source and distractor."""
        side, world = self.signal.grid, self.played.world
        return Ground(
            rows=side,
            columns=side,
            cells=list(range(side**2)),
            truths=[(int(world.hypothesis), "source"), (int(world.distractor), "distractor")],
            shows="posterior of the source",
            reading="signal",
            faintest=_faintest(self.signal),
            reach=self.signal.window,
            walks=True,
        )

    def spot(self, agent: int, number: int) -> tuple[int, int]:
        """Where it is."""
        row, column = self.positions[number, agent].tolist()
        return row, column

    def readings_at(self, agent: int, number: int) -> list[tuple[int, float]]:
        """The cells of its window that exist."""
        if number == 0 and not self.signal.observe_start:
            return []
        side = self.signal.grid
        top, left = (self.positions[number, agent] - self.signal.window // 2).tolist()
        window = np.ndenumerate(self.windows[number, agent])
        places = [(top + row, left + column, float(value)) for (row, column), value in window]
        return [(row * side + column, value) for row, column, value in places if 0 <= row < side and 0 <= column < side]

    def found(self, agent: int, number: int) -> list[int]:
        """Hits."""
        return [row * self.signal.grid + column for row, column in self.hits(agent, number)]

    # -- pictures

    def draw_world(self, axis: Axes, number: int, scale: float = 1.0) -> Any:
        """The field without noise, which is the same in all rounds."""
        shown = _map(axis, self.clean, cmap=FIELD, vmin=0.0, vmax=1.0)
        _rings(axis, self.signal, self.played.world, scale)
        return shown

    def draw_round(self, axis: Axes, number: int, scale: float = 1.0) -> Any:
        """The posterior when a round is decided, and the agents' paths."""
        from matplotlib.colors import LogNorm

        cells = self.played.probabilities[number].reshape(self.signal.grid, self.signal.grid)
        shown = _map(axis, cells, cmap=POSTERIOR, norm=LogNorm(_faintest(self.signal), 1.0, clip=True))
        _rings(axis, self.signal, self.played.world, scale)
        for agent in range(self.signal.agents):
            self._path(axis, agent, number, scale)
        for agent in range(self.signal.detectors):
            for cell in {cell for past in range(number + 1) for cell in self.hits(agent, past)}:
                look: dict[str, Any] = {
                    "color": AGENTS[agent % len(AGENTS)],
                    "markeredgecolor": "black",
                    "linestyle": "",
                }
                axis.plot(
                    *cell[::-1], marker="*", markersize=(9 + 4 * agent) * scale**0.7, markeredgewidth=0.8,
                    zorder=7 - 0.1 * agent, clip_on=False, **look,
                )  # fmt: skip
        row, column = divmod(int(self.played.decisions[number]), self.signal.grid)
        rimmed(axis, column, row, scale, marker="D", markersize=8.5, color="black", markerfacecolor="none", zorder=7)
        if number == self.played.rounds - 1:
            self._stops(axis, scale)
        return shown

    def _path(self, axis: Axes, agent: int, number: int, scale: float) -> None:
        """Path, position and window of an agent, with an offset so that agents do not cover each other."""
        from matplotlib.patches import Rectangle

        colour, aside = AGENTS[agent % len(AGENTS)], _aside(agent, self.signal)
        ways = self.positions[: number + 1, agent] + aside
        axis.plot(ways[:, 1], ways[:, 0], color=colour, linewidth=1.8 * scale**0.5, zorder=4, solid_capstyle="round")
        axis.plot(
            ways[:, 1], ways[:, 0], color=colour, linestyle="", marker=MARKERS[agent % len(MARKERS)],
            markersize=3 * scale**0.6, zorder=4,
        )  # fmt: skip
        axis.plot(
            ways[-1, 1], ways[-1, 0], color=colour, marker=MARKERS[agent % len(MARKERS)], markersize=6.5 * scale**0.7,
            markeredgecolor="black", markeredgewidth=0.8, zorder=6,
        )  # fmt: skip
        positions = self.positions[number]
        before = sum(bool(np.all(positions[other] == positions[agent])) for other in range(agent))  # in the same place
        side, inset = self.signal.window, 0.1 * self.signal.window * before
        row, column = positions[agent] - side / 2 + inset / 2
        stops = number == self.played.rounds - 1 and agent in self.played.stopped
        width = (3.0 if stops else 1.4) * scale**0.5
        axis.add_patch(
            Rectangle(
                (column, row), side - inset, side - inset, fill=False, edgecolor=colour, linewidth=width, zorder=5
            )
        )

    def _stops(self, axis: Axes, scale: float) -> None:
        """STOP in the windows of the agents that stopped."""
        for row, column in {tuple(self.positions[-1, agent].tolist()) for agent in self.played.stopped}:
            axis.text(
                column, row + self.signal.window / 2, "STOP", ha="center", va="center", fontsize=6.5 * scale**0.8,
                fontweight="bold", color="white", zorder=9,
                bbox={"boxstyle": "square,pad=0.15", "facecolor": "black", "linewidth": 0},
            )  # fmt: skip

    def bar_titles(self) -> tuple[str, str]:
        """The field, and the posterior."""
        return "signal without noise", f"{self.played.posterior} posterior of the source"

    def legend(self) -> list[Any]:
        """Agents, then marks."""
        from matplotlib.lines import Line2D

        handles: list[Any] = []
        for agent in range(self.signal.agents):
            kind = "field agent" if agent == self.signal.detectors else "detector"
            colour, marker = AGENTS[agent % len(AGENTS)], MARKERS[agent % len(MARKERS)]
            handles.append(
                Line2D([], [], color=colour, marker=marker, markeredgecolor="black", label=f"{kind} {agent + 1}")
            )
        handles += [
            legend_mark(
                label="its window", marker="s", markersize=12, markerfacecolor="none", markeredgecolor="#555555"
            ),
            legend_mark(label="registered", marker="*", markersize=10, markeredgecolor="black", markeredgewidth=0.8),
            legend_mark(label="answer", color="black", marker="D", markersize=9, markerfacecolor="none"),
            legend_mark(label="source", color=SOURCE, **RING),
            legend_mark(label="distractor", color=DISTRACTOR, **RING),
        ]
        return handles

    @classmethod
    def field(cls, problem: Problem, world: Any, key: Key[Array, ""]) -> Figure:
        """The paper's example of the field agent's signal."""
        assert isinstance(problem, Signal)
        return field_figure(problem, world, key)


def clean_field(problem: Signal, world: SignalWorld) -> np.ndarray:
    """The field agent's signal in every cell, without noise."""
    rows, columns = np.indices((problem.grid, problem.grid))

    def steps(cell: Any) -> Array:
        row, column = divmod(int(cell), problem.grid)
        return jnp.asarray(abs(rows - row) + abs(columns - column), jnp.int32)

    clean = problem.signal(steps(world.hypothesis), steps(world.distractor), jnp.asarray(world.intensity))
    return np.asarray(clean)


def noisy_field(problem: Signal, world: SignalWorld, key: Key[Array, ""]) -> np.ndarray:
    """One reading of every cell, clipped as the field agent's readings are."""
    clean = clean_field(problem, world)
    return np.clip(clean + np.asarray(problem.noise * jax.random.normal(key, clean.shape)), 0.0, 1.0)


def field_figure(problem: Signal, world: SignalWorld, key: Key[Array, ""]) -> Figure:
    """The field agent's signal over the whole grid, as in the paper's example."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 5.0), layout="constrained")
    axis = figure.subplots()
    shown = _map(axis, noisy_field(problem, world, key), cmap=FIELD, vmin=0.0, vmax=1.0)
    _rings(axis, problem, world, 1.8)
    ticks = np.arange(0, problem.grid, 5 if problem.grid > 12 else 2)
    axis.set_xticks(ticks, map(str, ticks))
    axis.set_yticks(ticks, map(str, ticks))
    axis.set_xlabel("column")
    axis.set_ylabel("row")
    axis.set_title(f"Agent {problem.agents}'s signal field: one noisy reading of every cell", fontsize=11)
    figure.colorbar(shown, ax=axis, fraction=0.046, pad=0.02, label="signal")
    figure.legend(
        handles=[
            legend_mark(label="source", color=SOURCE, **RING),
            legend_mark(label=f"distractor (intensity {float(world.intensity):.2f})", color=DISTRACTOR, **RING),
        ],
        loc="outside lower center",
        ncols=2,
        frameon=False,
    )
    return figure


def _map(axis: Axes, cells: np.ndarray, **look: Any) -> Any:
    """A grid seen from above, row 0 at the top."""
    shown = axis.imshow(cells, interpolation="nearest", **look)
    axis.set_xticks([])
    axis.set_yticks([])
    return shown


def _rings(axis: Axes, problem: Signal, world: SignalWorld, scale: float) -> None:
    """Source and distractor."""
    for cell, colour in ((world.hypothesis, SOURCE), (world.distractor, DISTRACTOR)):
        row, column = divmod(int(cell), problem.grid)
        look: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "zorder": 8}
        rimmed(axis, column, row, scale, markersize=13.0, color=colour, **look)


def _aside(agent: int, problem: Signal) -> float:
    """Offset of an agent's path, in cells."""
    return 0.6 * (agent - (problem.agents - 1) / 2) * problem.grid / 25


def _faintest(problem: Signal) -> float:
    """Lower end of the posterior's colours: a tenth of the uniform probability, rounded down."""
    return 10.0 ** math.floor(math.log10(0.1 / problem.grid**2))
