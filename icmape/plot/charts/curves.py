"""Curves and steps over an axis, with bands, intervals and a target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import ClassVar, Literal, NamedTuple

from icmape.plot.charts import svg
from icmape.plot.charts.chart import COMPACT, Chart, Key, legend
from icmape.plot.charts.frame import Frame, arranged, framed, panel_width
from icmape.plot.charts.scales import Axis
from icmape.plot.charts.svg import Number

Point = tuple[Number, Number]


class Series(NamedTuple):
    """Measured points. A step holds its value until the next point."""

    label: str
    points: Sequence[Point]
    colour: str
    dash: str = ""
    shape: Literal["line", "step", "dots"] = "line"
    marked: bool = False  # whether every point has a dot
    faint: bool = False  # such as one seed of several
    named: bool = True  # whether it is in the legend
    ends: Sequence[tuple[Number, Number]] = ()  # interval of each point, in y
    sides: Sequence[tuple[Number, Number]] = ()  # interval of each point, in x
    band: Sequence[tuple[Number, Number, Number]] = ()  # x, low and high

    @property
    def key(self) -> Key:
        """Its entry in the legend."""
        return Key(self.label, self.colour, self.dash, "dot" if self.shape == "dots" else "line")


class Panel(NamedTuple):
    """Series in a frame."""

    x: Axis
    y: Axis
    series: Sequence[Series]
    title: str = ""
    target: Number | None = None  # of y


@dataclass(frozen=True)
class Curves(Chart):
    """Panels side by side with one legend; on narrow drawings one below the other."""

    panels: Sequence[Panel] = ()
    tall: Number = 172.0  # pixels of a panel's inside
    target_label: str = ""
    kind: ClassVar[str] = "Curves"

    def draw(self, width: Number) -> tuple[Number, str]:
        """Height and drawing at a width."""
        each = panel_width(width, len(self.panels))
        drawn = arranged([self._panel(panel, each) for panel in self.panels], width)
        named = {one.label: one.key for panel in self.panels for one in panel.series if one.named and one.points}
        keys = list(named.values()) if len(named) > 1 or self.target_label else []
        if self.target_label:
            keys.append(Key(self.target_label, "", shape="target"))
        return svg.stacked([legend(keys, width), drawn])

    def _panel(self, panel: Panel, width: Number) -> tuple[Number, str]:
        y_values = [*([] if panel.target is None else [panel.target]), *_spread(panel.series)]
        x = panel.x.fitted(x for one in panel.series for x, _ in one.points)
        y = panel.y.fitted(y_values)
        frame = framed(width, self.tall if width >= COMPACT / 2 else self.tall * 0.85, x, y, panel.title)
        inside = "".join(_series(one, frame) for one in sorted(panel.series, key=lambda one: not one.faint))
        target = ""
        if panel.target is not None and frame.down.holds(panel.target):
            level = frame.down(panel.target)
            target = svg.line(frame.across.start, level, frame.across.end, level, "target")
        return frame.height, frame.behind + frame.clipped(target + inside)

    @property
    def look(self) -> str:
        """Panels stand side by side."""
        return "wide" if len(self.panels) > 1 else ""

    def described(self) -> str:
        """The last point of every curve."""
        rows = []
        for panel in self.panels:
            ends = [f"{one.label} ends at {one.points[-1][1]:.3g}" for one in panel.series if one.named and one.points]
            rows.append(f"{panel.y.label} by {panel.x.label}: {', '.join(ends)}")
        return "; ".join(rows)


def _spread(series: Iterable[Series]) -> list[Number]:
    """All heights that are drawn."""
    return [
        value
        for one in series
        for values in ([y for _, y in one.points], *one.ends, *((low, high) for _, low, high in one.band))
        for value in values
    ]


def _series(one: Series, frame: Frame) -> str:
    place = [(frame.across(x), frame.down(y)) for x, y in one.points]
    parts = []
    if one.band:
        upper = [(frame.across(x), frame.down(high)) for x, _, high in one.band]
        lower = [(frame.across(x), frame.down(low)) for x, low, _ in reversed(one.band)]
        parts.append(svg.element("path", d=svg.path([*upper, *lower], closed=True), class_="band"))
    if one.shape != "dots" and len(place) > 1:
        corners = stairs(place) if one.shape == "step" else thinned(place)
        kind = "curve faint" if one.faint else "curve"
        said = svg.title(one.label)
        dash = one.dash or None
        parts.append(
            svg.element("path", said, d=svg.path(corners), class_=kind, stroke=one.colour, stroke_dasharray=dash)
        )
    parts += [
        svg.line(x, frame.down(low), x, frame.down(high), "whisker", stroke=one.colour)
        for (x, _), (low, high) in zip(place, one.ends, strict=False)
    ]
    parts += [
        svg.line(frame.across(low), y, frame.across(high), y, "whisker", stroke=one.colour)
        for (_, y), (low, high) in zip(place, one.sides, strict=False)
    ]
    if one.marked or one.shape == "dots" or len(place) == 1:
        parts += [_dot(one, point, at) for point, at in zip(one.points, place, strict=True)]
    return "".join(parts)


def _dot(one: Series, point: Point, at: Point) -> str:
    said = svg.title(f"{one.label}: {point[1]:.4g} at {point[0]:.4g}")
    return svg.element("circle", said, cx=at[0], cy=at[1], r=4.0, fill=one.colour, class_="dot")


def stairs(points: Sequence[Point]) -> list[Point]:
    """Corners of a step function, which holds each value until the next point."""
    corners = list(points[:1])
    for (_, before), (x, y) in pairwise(points):
        corners += [(x, before), (x, y)] if y != before else [(x, y)]
    return corners


def thinned(points: Sequence[Point]) -> list[Point]:
    """The same line on a screen: of points in one column of pixels the first, the extremes and the last."""
    kept: list[Point] = []
    for _, group in groupby(points, key=lambda point: round(point[0])):
        column = list(group)
        if len(column) <= 4:
            kept += column
            continue
        low, high = (pick(range(len(column)), key=lambda index: column[index][1]) for pick in (min, max))
        kept += [column[index] for index in sorted({0, low, high, len(column) - 1})]
    return kept
