"""Figures over time: training dynamics and survival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from icmape.plot.figures.style import TARGET, explain, legend, new_figure, strokes
from icmape.plot.training_curves import SMOOTHING, smooth

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = {"tau": "stopping time τ (rounds)", "confidence": "posterior confidence at the stop"}


def dynamics(runs: Mapping[str, Sequence[Mapping[str, Any]]], delta: float, title: str, mark: str = "") -> Figure:
    """τ and confidence during training by environment steps: mean over seeds (smoothed), each seed as a thin line."""
    from matplotlib.ticker import EngFormatter

    figure, axes = new_figure(2)
    for axis, (name, label) in zip(axes, PANELS.items(), strict=True):
        for stroke, (method, rows) in zip(strokes(len(runs)), runs.items(), strict=True):
            seeds = sorted({row["seed"] for row in rows})
            curves = [_curve(rows, seed, name) for seed in seeds]
            curves = [curve for curve in curves if len(curve)]
            if not curves:
                continue
            for curve in curves if len(curves) > 1 else ():
                axis.plot(curve[:, 0], curve[:, 1], **stroke, linewidth=0.7, alpha=0.35)
            shortest = min(map(len, curves))
            mean = np.mean([curve[:shortest] for curve in curves], axis=0)
            count = f"{len(curves)} seed{'s' * (len(curves) > 1)}"
            axis.plot(mean[:, 0], mean[:, 1], **stroke, linewidth=2, label=f"{method} ({count})")
        axis.set_ylabel(label)
        axis.set_xlabel("rounds played in training (one seed)")
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))  # 20M: an exponent would lie on the label
    axes[1].axhline(1 - delta, **TARGET)
    axes[1].set_ylim(0, 1.02)
    axes[0].set_ylim(bottom=0)
    legend(axes[1], loc="lower right")
    return explain(figure, title, f"greedy episodes in training, moving average of parameter {SMOOTHING}", mark)


def _curve(rows: Sequence[Mapping[str, Any]], seed: int, name: str) -> np.ndarray:
    """Steps and smoothed values of one seed."""
    known = [row for row in rows if None not in (row.get(name), row.get("environment_steps"))]
    seed_rows = [row for row in known if row["seed"] == seed]
    values = smooth([row[name] for row in seed_rows]) if seed_rows else []
    return np.array([(row["environment_steps"], value) for row, value in zip(seed_rows, values, strict=True)])


def survival(
    active: Mapping[str, Sequence[Sequence[int]]], title: str, below: str, paper: Sequence[int] = (), mark: str = ""
) -> Figure:
    """Share of active episodes in each round: mean over a method's teams, with a thin line for each."""
    figure, (axis,) = new_figure(width=6.0, height=3.8)
    for stroke, (method, teams) in zip(strokes(len(active)), active.items(), strict=True):
        longest = max(map(len, teams))
        shares = np.array([[*(n / team[0] for n in team), *[0.0] * (longest - len(team))] for team in teams])
        for share in shares if len(shares) > 1 else ():
            axis.plot(share, **stroke, linewidth=0.7, alpha=0.35)
        axis.plot(shares.mean(axis=0), **stroke, linewidth=2, label=f"{method} ({len(teams)})")
    if paper:
        look: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 1.6}
        axis.plot([n / paper[0] for n in paper], label="paper, by its table", **look)
    axis.set(xlabel="round", ylabel="share of episodes still going", ylim=(0, 1.02), xlim=(0, None))
    legend(axis)
    return explain(figure, title, below, mark)
