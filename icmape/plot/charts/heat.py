"""Grids of numbers with tinted cells; cells below a target are hatched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from icmape.plot.charts import svg
from icmape.plot.charts.chart import Chart, Key, legend
from icmape.plot.charts.frame import arranged, panel_width
from icmape.plot.charts.svg import LINE, Number

MOST_TINT = 0.42  # opacity of the darkest cell: numbers on it keep the contrast of text in both themes
TINT = "var(--accent)"
ROW = 34.0


class Grid(NamedTuple):
    """Rows of numbers with a name; a missing number is an empty cell."""

    title: str
    values: Sequence[Sequence[Number | None]]
    form: str = ".2f"
    target: Number | None = None  # cells below it are hatched

    def written(self, value: Number) -> str:
        """A number; with more digits where it would be rounded to the target from below."""
        short = f"{value:{self.form}}"
        if self.target is None or value >= self.target or float(short) < self.target:
            return short
        return next((longer for digits in range(3, 7) if float(longer := f"{value:.{digits}f}") < self.target), short)


@dataclass(frozen=True)
class Heat(Chart):
    """Grids over the same two arguments, side by side."""

    rows: Sequence[Number] = ()
    columns: Sequence[Number] = ()
    names: tuple[str, str] = ("", "")  # of the rows' argument and of the columns'
    grids: Sequence[Grid] = ()
    kind: ClassVar[str] = "Grid"

    def draw(self, width: Number) -> tuple[Number, str]:
        """Height and drawing at a width."""
        each = panel_width(width, len(self.grids))
        keys = [Key(f"below {grid.target:g}", "", shape="hatch") for grid in self.grids if grid.target is not None]
        return svg.stacked([legend(keys, width), arranged([self._grid(grid, each) for grid in self.grids], width)])

    def _grid(self, grid: Grid, width: Number) -> tuple[Number, str]:
        heads = svg.wrapped(grid.title, width) + svg.wrapped(f"rows: {self.names[0]}", width)
        kinds = ["strong"] * len(svg.wrapped(grid.title, width)) + ["soft"] * len(heads)
        parts = [svg.words(row, 0, LINE * (n + 0.75), kinds[n]) for n, row in enumerate(heads)]
        top, left = LINE * len(heads) + 6, max(svg.width_of(f"{value:g}") for value in self.rows) + 10
        wide = (width - left - 2) / len(self.columns)
        known = [value for row in grid.values for value in row if value is not None]
        low, span = min(known), (max(known) - min(known)) or 1.0
        for down, (name, row) in enumerate(zip(self.rows, grid.values, strict=True)):
            y = top + down * ROW
            parts.append(svg.words(f"{name:g}", left - 6, y + ROW / 2 + 4, "tick", "end"))
            for across, value in enumerate(row):
                if value is not None:
                    x, tint = left + across * wide, MOST_TINT * (value - low) / span
                    parts.append(_cell(x, y, wide, value, tint, grid))
        bottom = top + ROW * len(self.rows)
        for across, name in enumerate(self.columns):
            parts.append(svg.words(f"{name:g}", left + (across + 0.5) * wide, bottom + LINE - 1, "tick", "middle"))
        below = svg.wrapped(f"columns: {self.names[1]}", width)
        parts += [svg.words(row, 0, bottom + LINE * (2 + n), "soft") for n, row in enumerate(below)]
        return bottom + LINE * (1.4 + len(below)), "".join(parts)

    @property
    def look(self) -> str:
        """Panels stand side by side."""
        return "wide" if len(self.grids) > 1 else ""

    def described(self) -> str:
        """The range of each grid, and how many cells miss its target."""
        parts = []
        for grid in self.grids:
            known = [value for row in grid.values for value in row if value is not None]
            said = f"{grid.title} from {min(known):{grid.form}} to {max(known):{grid.form}}"
            if grid.target is not None:
                said += f", {sum(value < grid.target for value in known)} of {len(known)} below {grid.target:g}"
            parts.append(said)
        return "; ".join(parts)


def _cell(x: Number, y: Number, wide: Number, value: Number, tint: Number, grid: Grid) -> str:
    box = {"x": x, "y": y, "width": wide - 2, "height": ROW - 2}
    parts = [svg.element("rect", **box, fill=TINT, fill_opacity=round(tint, 3), class_="cell")]
    written = grid.written(value)
    if grid.target is not None and value < grid.target:
        parts += [svg.line(*ends, "hatch") for ends in svg.hatching(x, y, wide - 2, ROW - 2)]
        half = svg.width_of(written) / 2 + 3
        middle = x + (wide - 2) / 2
        plate = {"x": middle - half, "y": y + ROW / 2 - 11, "width": 2 * half, "height": 19.0, "rx": 3}
        parts.append(svg.element("rect", **plate, class_="page"))
    parts.append(svg.words(written, x + (wide - 2) / 2, y + ROW / 2 + 4, anchor="middle"))
    return "".join(parts)
