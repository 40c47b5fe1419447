"""Charts of teams: accuracy and τ, calibration, survival, habits, stops and training."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from icmape.evaluation.calibration import Calibration
from icmape.evaluation.coordination import Coordination, Habit
from icmape.plot.charts import (
    Act,
    Axis,
    Bars,
    Curves,
    Dot,
    DotPanel,
    Dots,
    Key,
    Moment,
    Panel,
    Reliability,
    Series,
    Timeline,
    method_strokes,
)
from icmape.plot.charts.look import DASHES

ROUND = "round (0: before any data)"
TRAINED = {"tau": Axis("τ (rounds)", 0.0), "confidence": Axis("confidence at the stop", 0.0, 1.0, percent=True)}


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
) -> Dots:
    """A row for every method with a dot for each kind of worlds, then a row for each value to compare with."""
    names = [*bars, *lines]
    colours = [colour for colour, _ in method_strokes(names)]
    panels = []
    for column, form, axis in (("accuracy", ".3f", Axis("accuracy")), ("tau", ".2f", Axis("τ (rounds)", 0.0))):
        rows: list[list[Dot]] = []
        for colour, row in zip(colours, bars.values(), strict=False):
            kinds = [(kind, getattr(bar, column)) for kind, bar in row.items()]
            rows.append([_dot(kind, values, colour, form, index > 0) for index, (kind, values) in enumerate(kinds)])
        for colour, (name, line) in zip(colours[len(bars) :], lines.items(), strict=True):
            value = getattr(line, column)
            rows.append([] if value is None else [Dot(name, value, colour, words=format(value, form))])
        panels.append(DotPanel(axis, rows, 1 - delta if column == "accuracy" else None))
    kinds_shown = list(dict.fromkeys(kind for row in bars.values() for kind in row))
    shapes = ["dot", *["hollow"] * (len(kinds_shown) - 1)]
    keys = [Key(kind, "var(--soft)", shape=shape) for kind, shape in zip(kinds_shown, shapes, strict=True)]
    keys = [*(keys if len(keys) > 1 else []), Key(f"target {1 - delta:g}", "", shape="target")]
    return Dots(title, below, mark, names, panels, keys)


def _dot(kind: str, values: Sequence[float], colour: str, form: str, hollow: bool) -> Dot:
    """Mean over seeds with one standard deviation, and each seed."""
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Dot(kind or "team", mean, colour, words=format(mean, form), hollow=hollow)
    ends = (mean - statistics.stdev(values), mean + statistics.stdev(values))
    return Dot(kind or "teams", mean, colour, *ends, format(mean, form), hollow, singles=tuple(values))


def reliability(panels: Mapping[str, Mapping[str, Calibration]], title: str, below: str, mark: str = "") -> Reliability:
    """A diagram for every panel, with a curve for every calibration, and bin sizes below."""
    return Reliability(title, below, mark, panels)


def survival(
    active: Mapping[str, Sequence[Sequence[int]]], title: str, below: str, paper: Sequence[int] = (), mark: str = ""
) -> Curves:
    """Share of episodes that reach each round: steps of the mean over a method's teams, and of each team."""
    labels = [*active, *(["paper"] if paper else [])]
    strokes = dict(zip(labels, method_strokes(labels), strict=True))
    series = []
    for method, teams in active.items():
        colour, dash = strokes[method]
        longest = max(map(len, teams))
        shares = [[*(n / team[0] for n in team), *[0.0] * (longest - len(team))] for team in teams]
        for share in shares if len(shares) > 1 else ():
            series.append(Series(method, list(enumerate(share)), colour, dash, "step", faint=True, named=False))
        mean = [statistics.fmean(values) for values in zip(*shares, strict=True)]
        label = f"{method} ({len(teams)} teams)" if len(teams) > 1 else method
        series.append(Series(label, list(enumerate(mean)), colour, dash, "step"))
    if paper:
        shares = [[n / paper[0] for n in paper]]
        label = "paper, by its table"
        series.append(Series(label, list(enumerate([*shares[0], 0.0])), strokes["paper"][0], DASHES[1], "step"))
    numbers = whole(max(len(one.points) for one in series))
    panel = Panel(
        Axis(ROUND, 0.0, ticks=numbers), Axis("share of episodes that reach the round", 0.0, 1.0, percent=True), series
    )
    return Curves(title, below, mark, [panel])


def whole(count: int, most: int = 12) -> list[int]:
    """Numbers from 0 at an axis that counts rounds: whole ones, at most so many."""
    return list(range(0, count, max(1, math.ceil(count / most))))


def habits(coordination: Coordination, names: Mapping[int, str], title: str, below: str, mark: str = "") -> Timeline:
    """For every round and agent the most common action, and its share among active episodes."""
    moments = []
    for number, group in groupby(coordination.habits, key=lambda habit: habit.round):
        rows = list(group)
        acts = [_act(habit, coordination, names) for habit in rows]
        moments.append(Moment(number, rows[0].active / coordination.episodes, acts))
    return Timeline(title, below, mark, moments)


def _act(habit: Habit, coordination: Coordination, names: Mapping[int, str]) -> Act:
    named = [
        ("STOP" if action == coordination.stop else names.get(action, f"action {action + 1}"), times / habit.active)
        for action, times in habit.actions
    ]
    others = ", ".join(f"{name} {share:.1%}" for name, share in named[1:])
    return Act(*named[0], others)


def stoppers(shares: Mapping[str, Mapping[int, float]], title: str, below: str, mark: str = "") -> Bars:
    """Number of agents that stop together, as shares of voluntary stops."""
    most = max([1, *(size for row in shares.values() for size in row)])
    groups = [f"{size} agent{'s' * (size > 1)}" for size in range(1, most + 1)]
    series = {label: [row.get(size, 0.0) for size in range(1, most + 1)] for label, row in shares.items()}
    axis = Axis("share of voluntary stops", 0.0, percent=True)
    return Bars(title, below, mark, groups, series, axis)


def dynamics(runs: Mapping[str, Sequence[Mapping[str, Any]]], delta: float, title: str, mark: str = "") -> Curves:
    """τ and confidence during training by rounds played, as they were measured: a line for each seed."""
    strokes = method_strokes(list(runs))
    panels = []
    for column, axis in TRAINED.items():
        series = [
            line
            for (method, rows), stroke in zip(runs.items(), strokes, strict=True)
            for line in _seeds(method, rows, column, stroke)
        ]
        target = 1 - delta if column == "confidence" else None
        panels.append(Panel(Axis("rounds played in training (one seed)", 0.0), axis, series, target=target))
    return Curves(
        title, "greedy episodes in training, every measured value", mark, panels, target_label=f"{1 - delta:g}"
    )


def _seeds(method: str, rows: Sequence[Mapping[str, Any]], column: str, stroke: tuple[str, str]) -> list[Series]:
    known = [row for row in rows if None not in (row.get(column), row.get("environment_steps"))]
    seeds = sorted({row["seed"] for row in known})
    label = f"{method} ({len(seeds)} seed{'s' * (len(seeds) > 1)})"
    return [
        Series(
            label,
            [(float(row["environment_steps"]), float(row[column])) for row in known if row["seed"] == seed],
            *stroke,
            faint=len(seeds) > 1,
            named=index == 0,
        )
        for index, seed in enumerate(seeds)
    ]
