"""Bars in groups, and the timeline of a team: what each agent does in each round."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from icmape.plot.charts import svg
from icmape.plot.charts.chart import COMPACT, NARROW, Chart, Key, legend
from icmape.plot.charts.frame import below, bottom_axis
from icmape.plot.charts.look import agent_colour, method_strokes
from icmape.plot.charts.scales import Axis
from icmape.plot.charts.svg import LINE, SMALL, Number

BAR = 15.0
BETWEEN = 10.0
ROW = 26.0  # of a timeline
HEAD = 34.0
APART = 8.0


@dataclass(frozen=True)
class Bars(Chart):
    """Shares or counts from 0, in groups: a bar for each series in each group."""

    groups: Sequence[str] = ()
    series: Mapping[str, Sequence[Number]] = field(default_factory=dict)  # a value for each group
    axis: Axis = field(default_factory=lambda: Axis("", 0.0))
    form: str = ".1%"
    kind: ClassVar[str] = "Bars"

    def draw(self, width: Number) -> tuple[Number, str]:
        """Height and drawing at a width."""
        strokes = dict(zip(self.series, method_strokes(list(self.series)), strict=True))
        keys = [Key(label, colour, shape="bar") for label, (colour, _) in strokes.items()]
        top, head = legend(keys if len(keys) > 1 else [], width)
        beside = max(map(svg.width_of, self.groups)) + 10
        left = beside if beside < width / 2.5 else 0.0
        space = max(svg.width_of(format(v, self.form), SMALL) for values in self.series.values() for v in values) + 10
        across = self.axis.fitted(v for values in self.series.values() for v in values).scale(left, width - space)
        y, rows = top + 4, []
        for index, group in enumerate(self.groups):
            tall = BAR * len(self.series)
            rows.append(
                svg.words(
                    group, left - 8 if left else 0, y + (tall / 2 + 5 if left else 12), "", "end" if left else "start"
                )
            )
            y += 0 if left else LINE
            for lane, (label, values) in enumerate(self.series.items()):
                rows.append(
                    self._bar(label, values[index], across(0), across(values[index]), y + lane * BAR, strokes[label][0])
                )
            y += tall + BETWEEN
        return y + below(across), "".join([head, *bottom_axis(across, y, top), *rows])

    def _bar(self, label: str, value: Number, start: Number, end: Number, y: Number, colour: str) -> str:
        said = svg.title(f"{label}: {format(value, self.form)}")
        bar = svg.element("rect", said, x=start, y=y, width=max(end - start, 0.0), height=BAR - 3, fill=colour)
        return bar + svg.words(format(value, self.form), end + 5, y + BAR - 5, "tick")

    def described(self) -> str:
        """Every value."""
        return "; ".join(
            f"{label}: " + ", ".join(f"{g} {format(v, self.form)}" for g, v in zip(self.groups, values, strict=True))
            for label, values in self.series.items()
        )


class Act(NamedTuple):
    """The most common action of an agent in a round, and its share of the episodes that go on."""

    action: str
    share: Number
    others: str = ""  # what else is done, in words


class Moment(NamedTuple):
    """A round: its number, the share of episodes that reach it, and an act for each agent."""

    number: int
    active: Number
    acts: Sequence[Act]


@dataclass(frozen=True)
class Timeline(Chart):
    """Rounds from top to bottom, agents from left to right."""

    moments: Sequence[Moment] = ()
    kind: ClassVar[str] = "Timeline"

    def draw(self, width: Number) -> tuple[Number, str]:
        """Height and drawing at a width; agents for whom there is no space beside the others stand below them."""
        agents = range(len(self.moments[0].acts))
        blocks = math.ceil(len(agents) / self._fit(width))
        size = math.ceil(len(agents) / blocks)
        return svg.stacked([self._block(agents[at : at + size], width) for at in agents[::size]], gap=10.0)

    def _fit(self, width: Number) -> int:
        """Agents whose actions fit side by side."""
        words = [word for moment in self.moments for act in moment.acts for word in act.action.split()]
        return max(1, int((width - sum(_margins(width))) / (1.15 * max(map(svg.width_of, words)) + APART)))

    def _block(self, agents: Sequence[int], width: Number) -> tuple[Number, str]:
        """Some of the agents in all rounds."""
        first, last = _margins(width)
        wide = (width - first - last) / len(agents)
        names = {moment.acts[agent].action for moment in self.moments for agent in agents}
        lines = min(max(len(svg.wrapped(name, wide - APART, SMALL)) for name in names), 2)
        row = ROW + LINE * (lines - 1)
        parts = [svg.words("round", 0, 22.0, "soft"), svg.words("reached", width, 22.0, "soft", "end")]
        for place, agent in enumerate(agents):
            x = first + place * wide + 11
            parts += [
                svg.element("circle", cx=x, cy=17.0, r=10.0, fill=agent_colour(agent), stroke="var(--on-agent)"),
                svg.words(str(agent + 1), x, 21.0, "on-agent", "middle"),
            ]
        for index, moment in enumerate(self.moments):
            y = HEAD + index * row
            parts += [svg.words(str(moment.number), 4, y + 13, "strong"), svg.line(0, y - 3, width, y - 3, "grid")]
            parts.append(svg.words(f"{moment.active:.0%}", width, y + 13, "tick", "end"))
            for place, agent in enumerate(agents):
                parts.append(_act(moment.acts[agent], agent, first + place * wide, y, wide - APART, lines))
        return HEAD + row * len(self.moments), "".join(parts)

    @property
    def look(self) -> str:
        """Many rounds are long, and long names of many agents need space."""
        return "tall" if len(self.moments) > 9 else "wide" if self._fit(NARROW) < len(self.moments[0].acts) else ""

    def described(self) -> str:
        """The acts of every round."""
        return "; ".join(
            f"round {moment.number}: "
            + ", ".join(f"agent {n} {act.action} {act.share:.0%}" for n, act in enumerate(moment.acts, 1))
            for moment in self.moments
        )


def _margins(width: Number) -> tuple[Number, Number]:
    """Space for the numbers of the rounds, and for the share of episodes."""
    return (45.0, 48.0) if width < COMPACT else (56.0, 60.0)


def _act(act: Act, agent: int, x: Number, y: Number, wide: Number, most_lines: int) -> str:
    """Name and share of an action, over a bar as long as the share; long names have more lines."""
    whole = f"{act.action} {act.share:.0%}"
    rows = [whole] if 1.12 * svg.width_of(whole, SMALL) <= wide else svg.wrapped(act.action, wide, SMALL)
    most = max(int(wide / (svg.LETTER * SMALL)), 3)
    lines = [row if len(row) <= most else row[: most - 1] + "…" for row in rows[:most_lines]]
    below = y + 17 + LINE * (most_lines - 1)
    said = svg.title(f"agent {agent + 1}: {act.action} {act.share:.1%}{f'; {act.others}' if act.others else ''}")
    kind = "tick strong" if act.action == "STOP" else "tick"
    named = [svg.words(row, x, y + 12 + LINE * n, kind) for n, row in enumerate(lines)]
    track = svg.element("rect", x=x, y=below, width=wide, height=5.0, class_="track")
    bar = svg.element(
        "rect", x=x, y=below, width=wide * act.share, height=5.0, fill=agent_colour(agent), class_="share"
    )
    return svg.element("g", said, *named, track, bar)
