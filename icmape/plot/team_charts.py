"""Charts of teams: accuracy and τ, calibration, survival, habits, stops and training."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

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
    Series,
    Timeline,
    method_strokes,
)
from icmape.plot.charts.look import DASHES

ROUND = "rounds of readings"
TAU = "τ (rounds, the stop included)"
TRAINED = {"tau": Axis(TAU, 0.0), "confidence": Axis("confidence at the stop", 0.0, 1.0, percent=True)}


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
    for column, form, axis in (("accuracy", ".3f", Axis("accuracy")), ("tau", ".2f", Axis(TAU, 0.0))):
        rows: list[list[Dot]] = []
        for colour, row in zip(colours, bars.values(), strict=False):
            kinds = [(kind, getattr(bar, column)) for kind, bar in row.items()]
            target = 1 - delta if column == "accuracy" else None
            rows.append([_dot(*pair, colour, form, target, index > 0) for index, pair in enumerate(kinds)])
        for colour, (name, line) in zip(colours[len(bars) :], lines.items(), strict=True):
            value = getattr(line, column)
            poor = column == "accuracy" and value is not None and misses(value, 1 - delta)
            rows.append([] if value is None else [Dot(name, value, colour, words=format(value, form), hollow=poor)])
        panels.append(DotPanel(axis, rows, 1 - delta if column == "accuracy" else None))
    kinds_shown = list(dict.fromkeys(kind for row in bars.values() for kind in row))
    shapes = ["dot", *["diamond"] * (len(kinds_shown) - 1)]
    keys = [Key(kind, "var(--soft)", shape=shape) for kind, shape in zip(kinds_shown, shapes, strict=True)]
    keys = [*(keys if len(keys) > 1 else []), Key(f"target {1 - delta:g}", "", shape="target")]
    if any(dot.hollow for row in panels[0].rows for dot in row):
        keys.append(Key(f"accuracy below {1 - delta:g}", "var(--soft)", shape="hollow"))
    return Dots(title, below, mark, names, panels, keys)


def misses(accuracy: float, target: float) -> bool:
    """Whether an accuracy is below the target, as it is written."""
    return round(accuracy, 3) < target


def _dot(kind: str, values: Sequence[float], colour: str, form: str, target: float | None, other_worlds: bool) -> Dot:
    """Mean over seeds with one standard deviation, and each seed; hollow below a target."""
    mean = statistics.fmean(values)
    hollow = target is not None and misses(mean, target)
    shape: Literal["dot", "diamond"] = "diamond" if other_worlds else "dot"
    if len(values) == 1:
        return Dot(kind or "team", mean, colour, words=format(mean, form), hollow=hollow, shape=shape)
    ends = (mean - statistics.stdev(values), mean + statistics.stdev(values))
    return Dot(kind or "teams", mean, colour, *ends, format(mean, form), hollow, tuple(values), shape)


def survival(
    active: Mapping[str, Sequence[Sequence[int]]], title: str, below: str, paper: Sequence[int] = (), mark: str = ""
) -> Curves:
    """Share of episodes that have not ended after so many rounds of readings: steps of the mean over a method's teams,
    and of each team. `active` are the numbers of episodes that reach each decision, the first before any reading.
    """
    labels = [*active, *(["paper"] if paper else [])]
    strokes = dict(zip(labels, method_strokes(labels), strict=True))
    series = []
    for method, teams in active.items():
        colour, dash = strokes[method]
        longest = max(sum(n > 0 for n in team) for team in teams)
        shares = [[*(n / team[0] for n in team[1 : longest + 1]), *[0.0] * (longest + 1 - len(team))] for team in teams]
        for share in shares if len(shares) > 1 else ():
            series.append(Series(method, list(enumerate(share)), colour, dash, "step", faint=True, named=False))
        mean = [statistics.fmean(values) for values in zip(*shares, strict=True)]
        label = f"{method} ({len(teams)} teams)" if len(teams) > 1 else method
        series.append(Series(label, list(enumerate(mean)), colour, dash, "step"))
    if paper:
        printed = [*(n / paper[0] for n in paper[1:]), 0.0]
        series.append(Series("paper, by its table", list(enumerate(printed)), strokes["paper"][0], DASHES[1], "step"))
    numbers = whole(max(len(one.points) for one in series))
    panel = Panel(
        Axis(ROUND, 0.0, ticks=numbers), Axis("share of episodes that have not ended", 0.0, 1.0, percent=True), series
    )
    return Curves(title, below, mark, [panel])


def whole(count: int, most: int = 12) -> list[int]:
    """Numbers from 0 at an axis that counts rounds: whole ones, at most so many."""
    return list(range(0, count, max(1, math.ceil(count / most))))


def habits(coordination: Coordination, names: Mapping[int, str], title: str, below: str, mark: str = "") -> Timeline:
    """For every round, counted from 1, and agent the most common choice, and its share among active episodes."""
    moments = []
    for number, group in groupby(coordination.habits, key=lambda habit: habit.round):
        rows = list(group)
        acts = [_act(habit, coordination, names) for habit in rows]
        moments.append(Moment(number + 1, rows[0].active / coordination.episodes, acts))
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
        title,
        "greedy episodes in training, every measured value",
        mark,
        panels,
        target_label=f"target {100 * (1 - delta):g} %",
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
