"""Dot plots: a row for each thing that is compared, dots for the methods, lines for the intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from icmape.plot.charts import svg
from icmape.plot.charts.chart import COMPACT, Chart, Key, diamond, legend
from icmape.plot.charts.frame import APART, below, bottom_axis
from icmape.plot.charts.scales import Axis, Scale
from icmape.plot.charts.svg import LINE, SMALL, Number

LANE = 17.0  # height of a dot's own lane in its row
BETWEEN = 9.0  # rows
DASH = "–"  # in place of a value that is not known


class Dot(NamedTuple):
    """A value with its interval. `words` stand beside it; single values, such as those of seeds, are small dots."""

    label: str  # in the legend
    value: Number
    colour: str
    low: Number | None = None
    high: Number | None = None
    words: str = ""
    hollow: bool = False  # what does not reach the target
    singles: Sequence[Number] = ()
    shape: Literal["dot", "diamond"] = "dot"

    @property
    def values(self) -> list[Number]:
        """All positions that it takes."""
        return [self.value, *self.singles, *(end for end in (self.low, self.high) if end is not None)]


class DotPanel(NamedTuple):
    """An axis, and for each row its dots, from top to bottom."""

    axis: Axis
    rows: Sequence[Sequence[Dot]]
    target: Number | None = None


@dataclass(frozen=True)
class Dots(Chart):
    """Rows with names, and one or more panels side by side; on narrow drawings one below the other."""

    names: Sequence[str] = ()
    panels: Sequence[DotPanel] = ()
    keys: Sequence[Key] = ()
    kind: ClassVar[str] = "Dot plot"

    def draw(self, width: Number) -> tuple[Number, str]:
        """Height and drawing at a width."""
        beside = width >= COMPACT
        room = min(0.34 * width, max(map(svg.width_of, self.names)) + 12) if beside else 0.0
        each = (width - room - APART * (len(self.panels) - 1)) / len(self.panels) if beside else width
        top, head = legend(self.keys, width)
        blocks, y, height = [head], top, top
        for index, panel in enumerate(self.panels):
            left = room + index * (each + APART) if beside else 0.0
            height, body = self._panel(panel, left, left + each, y, room)
            blocks.append(body + (self._names_beside(room, y) if beside and index == 0 else ""))
            y = y if beside else height + 14
        return height, "".join(blocks)

    def _rows(self, room: Number, top: Number) -> list[tuple[Number, Number]]:
        """Top and height of each row beside its name: the same in all panels."""
        places: list[tuple[Number, Number]] = []
        y = top + 4
        for index, name in enumerate(self.names):
            most = max(len(panel.rows[index]) for panel in self.panels)
            height = max(LANE * max(most, 1), LINE * len(svg.wrapped(name, room - 12)))
            places.append((y, height))
            y += height + BETWEEN
        return places

    def _names_beside(self, room: Number, top: Number) -> str:
        parts = []
        for name, (y, height) in zip(self.names, self._rows(room, top), strict=True):
            lines = svg.wrapped(name, room - 12)
            first = y + (height - LINE * len(lines)) / 2
            parts += [svg.words(row, 0, first + LINE * (n + 0.76), "strong") for n, row in enumerate(lines)]
            parts.append(svg.line(0, y + height + BETWEEN / 2, room, y + height + BETWEEN / 2, "grid"))
        return "".join(parts)

    def _panel(self, panel: DotPanel, left: Number, right: Number, top: Number, room: Number) -> tuple[Number, str]:
        """One panel below `top`; returns where it ends. Without a room beside it, names stand above their rows."""
        axis = panel.axis.fitted([*(v for row in panel.rows for dot in row for v in dot.values), *_known(panel.target)])
        longest = max((svg.width_of(dot.words, SMALL) for row in panel.rows for dot in row), default=0.0)
        across = axis.scale(
            left + 6, right - (min(longest + 10, (0.55 if room else 0.62) * (right - left)) if longest else 8)
        )
        places = self._rows(room, top) if room else self._rows_below_names(panel, right - left, top)
        named = zip(self.names, places, strict=True)
        rows = [] if room else [self._name_above(name, right, y) for name, (y, _) in named]
        bottom = top
        for dots, (y, height) in zip(panel.rows, places, strict=True):
            first = y + height - LANE * len(dots) if not room else y + (height - LANE * len(dots)) / 2
            rows += [self._dot(dot, across, first + LANE * (n + 0.5), right) for n, dot in enumerate(dots)]
            rows += [] if dots else [svg.words(DASH, across.start, first + 4, "tick")]
            bottom = y + height + BETWEEN
            rows.append(svg.line(left, bottom - BETWEEN / 2, right, bottom - BETWEEN / 2, "grid"))
        parts = bottom_axis(across, bottom, top)
        if panel.target is not None:
            parts.append(svg.line(across(panel.target), top, across(panel.target), bottom, "target"))
        return bottom + below(across), "".join([*parts, *rows])

    def _rows_below_names(self, panel: DotPanel, width: Number, top: Number) -> list[tuple[Number, Number]]:
        places: list[tuple[Number, Number]] = []
        y = top + 4
        for name, dots in zip(self.names, panel.rows, strict=True):
            height = LINE * len(svg.wrapped(name, width)) + 2 + LANE * max(len(dots), 1)
            places.append((y, height))
            y += height + BETWEEN
        return places

    def _name_above(self, name: str, width: Number, y: Number) -> str:
        lines = svg.wrapped(name, width)
        return "".join(svg.words(row, 0, y + LINE * (n + 0.8), "strong over") for n, row in enumerate(lines))

    def _dot(self, dot: Dot, across: Scale, y: Number, right: Number) -> str:
        """A dot with its interval. Its words stand on the right, or on the left where there is no space."""
        x, parts = across(dot.value), []
        if dot.low is not None and dot.high is not None:
            parts.append(svg.line(across(dot.low), y, across(dot.high), y, "whisker", stroke=dot.colour))
        for single in dot.singles:
            parts.append(svg.element("circle", cx=across(single), cy=y, r=2.5, fill=dot.colour, class_="seed"))
        look = {"class_": "hollow", "stroke": dot.colour} if dot.hollow else {"class_": "dot", "fill": dot.colour}
        said = svg.title(f"{dot.label}: {dot.words or format(dot.value, '.3g')}")
        if dot.shape == "diamond":
            parts.append(diamond(x, y, dot.colour, said, dot.hollow))
        else:
            parts.append(svg.element("circle", said, cx=x, cy=y, r=4.2 if dot.hollow else 5.2, **look))
        if dot.words:
            first, last = (pick(map(across, dot.values)) for pick in (min, max))
            fits = last + 9 + svg.width_of(dot.words, SMALL) <= right + 4 or right - last > first - across.start
            place, anchor = (last + 9, "start") if fits else (first - 9, "end")
            parts.append(svg.words(dot.words, place, y + 4, "tick over", anchor))
        return "".join(parts)

    @property
    def look(self) -> str:
        """Panels stand side by side."""
        return "wide" if len(self.panels) > 1 else ""

    def described(self) -> str:
        """Every value."""
        return "; ".join(
            f"{name}: " + ", ".join(f"{dot.label} {dot.words or format(dot.value, '.3g')}" for dot in dots)
            for panel in self.panels
            for name, dots in zip(self.names, panel.rows, strict=True)
        )


def _known(value: Number | None) -> list[Number]:
    return [] if value is None else [value]
