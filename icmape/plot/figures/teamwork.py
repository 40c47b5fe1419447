"""Figures of actions and stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from icmape.evaluation.coordination import Coordination
from icmape.plot.figures.style import colours, explain, legend, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 8  # actions with a colour of their own


def habits(coordination: Coordination, name: Callable[[int], str], title: str, below: str, mark: str = "") -> Figure:
    """For every agent, the share of each action among active episodes, round by round."""
    agents = max(habit.agent for habit in coordination.habits) + 1
    rounds = max(habit.round for habit in coordination.habits) + 1
    counts: dict[int, int] = {}
    for habit in coordination.habits:
        for action, times in habit.actions:
            counts[action] = counts.get(action, 0) + times
    shown = sorted(sorted(counts, key=lambda action: -counts[action])[:MOST])
    palette = {a: "black" if a == coordination.stop else c for a, c in zip(shown, colours(len(shown)), strict=True)}
    columns = min(agents, 3)
    figure, axes = new_figure(columns, -(-agents // columns), width=3.4, height=2.6, sharex=True, sharey=True)
    for axis in axes[agents:]:
        axis.set_visible(False)
    for agent, axis in enumerate(axes[:agents]):
        floor = np.zeros(rounds)
        for action in shown:
            share = np.zeros(rounds)
            for habit in coordination.habits:
                if habit.agent == agent:
                    share[habit.round] = dict(habit.actions).get(action, 0) / habit.active
            label = "STOP" if action == coordination.stop else name(action)
            axis.bar(range(rounds), share, 0.9, bottom=floor, color=palette[action], label=label)
            floor += share
        others = "others" if (floor < 0.995).any() else None
        axis.bar(range(rounds), 1 - floor, 0.9, bottom=floor, color="#DDDDDD", label=others)
        axis.set_title(f"agent {agent + 1}", fontsize=9)
        axis.set(ylim=(0, 1), xlabel="round")
        axis.grid(visible=False)
    named = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside right upper", fontsize=8)
    for axis in axes[:agents:columns]:
        axis.set_ylabel("share of active")
    return explain(figure, title, below, mark)


def stoppers(shares: Mapping[str, Mapping[int, float]], title: str, below: str, mark: str = "") -> Figure:
    """Number of agents that stop together, as shares of voluntary stops."""
    figure, (axis,) = new_figure(width=5.4, height=3.2)
    most = max(max(row, default=0) for row in shares.values())
    wide = 0.8 / len(shares)
    for index, (colour, (label, row)) in enumerate(zip(colours(len(shares)), shares.items(), strict=True)):
        places = [size + (index - (len(shares) - 1) / 2) * wide for size in range(1, most + 1)]
        axis.bar(places, [row.get(size, 0.0) for size in range(1, most + 1)], wide * 0.92, color=colour, label=label)
    axis.set_xticks(range(1, most + 1))
    axis.set(xlabel="agents that chose STOP in the last round", ylabel="share of voluntary stops")
    axis.grid(axis="x", visible=False)
    legend(axis, loc="upper right")
    return explain(figure, title, below, mark)
