"""The frame of a panel: axes with names and round numbers, a grid, and the place where data are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from icmape.plot.charts import svg
from icmape.plot.charts.chart import COMPACT
from icmape.plot.charts.scales import Axis, Scale
from icmape.plot.charts.svg import LINE, SMALL, Number

APART = 28.0  # pixels between panels
TICK_SPACE = 11.0
RIM = 1.5  # pixels of a line beyond the axes, so that one at 100 % has its whole width
RIGHT = 18.0  # pixels beside a panel, for half of its last number


class Frame(NamedTuple):
    """Scales of a panel, its size, and what is drawn behind the data."""

    across: Scale
    down: Scale
    height: Number
    behind: str

    def clipped(self, body: str) -> str:
        """A drawing that ends at the axes: what lies outside is not shown."""
        left, right = self.across.start - RIM, self.across.end + RIM
        top, bottom = self.down.end - RIM, self.down.start + RIM
        box = f"{svg.short(left)} {svg.short(top)} {svg.short(right - left)} {svg.short(bottom - top)}"
        x, y = left, top
        return svg.element(
            "svg", body, x=x, y=y, width=right - left, height=bottom - top, viewBox=box, overflow="hidden"
        )


def panel_width(width: Number, panels: int) -> Number:
    """Width of each panel; on narrow drawings they stand one below the other."""
    return width if width < COMPACT else (width - APART * (panels - 1)) / panels


def arranged(panels: Sequence[tuple[Number, str]], width: Number) -> tuple[Number, str]:
    """Panels side by side, or one below the other."""
    if width < COMPACT or len(panels) == 1:
        return svg.stacked(panels, gap=18.0)
    each = panel_width(width, len(panels)) + APART
    moved = [
        svg.element("g", body, transform=f"translate({svg.short(index * each)} 0)") if index else body
        for index, (_, body) in enumerate(panels)
    ]
    return max(height for height, _ in panels), "".join(moved)


def framed(width: Number, plot_height: Number, x: Axis, y: Axis, title: str = "", least: Number = 0) -> Frame:
    """A panel of a width, with the name of its y axis above it and that of its x axis below.

    `least` is the least space for the numbers on the left.
    """
    heads = [(row, "strong") for row in svg.wrapped(title, width)]
    heads += [(row, "soft") for row in svg.wrapped(y.label, width)]
    top = LINE * len(heads) + 6
    behind = [svg.words(row, 0, LINE * (n + 0.75), kind) for n, (row, kind) in enumerate(heads)]
    down = y.scale(top + plot_height, top)
    marks = [(value, y.written(value)) for value in down.ticks(max(2, int(plot_height / 28)))]
    left = max((svg.width_of(text, SMALL) for _, text in marks), default=0.0) + TICK_SPACE
    left = max(left, least)
    across = x.scale(left, width - RIGHT)
    behind += [_row(down(value), text, left, width - RIGHT) for value, text in marks]
    behind += bottom_axis(across, down.start, top)
    return Frame(across, down, down.start + below(across), "".join(behind))


def _row(y: Number, text: str, left: Number, right: Number) -> str:
    return svg.line(left, y, right, y, "grid") + svg.words(text, left - 5, y + 4, "tick", "end")


def bottom_axis(across: Scale, bottom: Number, top: Number) -> list[str]:
    """Numbers below a panel, with lines up to its top, and the axis's name."""
    parts = []
    for value, text in across_ticks(across):
        x = across(value)
        middle = max(x, svg.width_of(text, SMALL) / 2)  # the left end of the drawing cuts no number
        parts += [svg.line(x, top, x, bottom, "grid"), svg.words(text, middle, bottom + LINE - 2, "tick", "middle")]
    parts.append(svg.line(across.start, bottom, across.end, bottom, "axis"))
    middle = (across.start + across.end) / 2
    rows = enumerate(_name(across))
    return parts + [svg.words(row, middle, bottom + LINE * (2 + n), "soft", "middle") for n, row in rows]


def below(across: Scale) -> Number:
    """Space that the numbers and the name of an axis need."""
    return LINE * (1 + len(_name(across))) + 6


def _name(across: Scale) -> list[str]:
    """Lines of the name of an axis."""
    return svg.wrapped(across.axis.label, across.end - across.start + RIGHT)


def across_ticks(across: Scale) -> list[tuple[Number, str]]:
    """Numbers for which there is space."""
    for most in range(max(3, int((across.end - across.start) / 44)), 1, -1):
        marks = [(value, across.axis.written(value)) for value in across.ticks(most)]
        if _apart(across, marks):
            return marks
    return marks[:: max(1, len(marks) // 2)]


def _apart(across: Scale, marks: Sequence[tuple[Number, str]]) -> bool:
    places = [(across(value), svg.width_of(text, SMALL) / 2) for value, text in marks]
    return all(x + half + 4 <= other - beside for (x, half), (other, beside) in pairwise(places))
