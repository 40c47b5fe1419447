"""Dot plots in which every row has an axis of its own: rows of large numbers do not press small ones together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icmape.plot.charts import svg
from icmape.plot.charts.chart import COMPACT, legend
from icmape.plot.charts.dots import BETWEEN, LANE, Dot, Dots
from icmape.plot.charts.frame import below, bottom_axis
from icmape.plot.charts.scales import Axis, Scale
from icmape.plot.charts.svg import LINE, SMALL, Number

BESIDE = 9.0  # pixels between a dot and its words
LEAST = 0.3  # share of the width that an axis has at least


@dataclass(frozen=True)
class ApartDots(Dots):
    """Rows of one panel, each with its axis below; the name of the axis stands below the last."""

    def draw(self, width: Number) -> tuple[Number, str]:
        """Height and drawing at a width."""
        beside = width >= COMPACT
        room = min(0.3 * width, max(map(svg.width_of, self.names)) + 12) if beside else 0.0
        y, head = legend(self.keys, width)
        parts = [head]
        (panel,) = self.panels
        for index, (name, dots) in enumerate(zip(self.names, panel.rows, strict=True)):
            last = index == len(self.names) - 1
            y, drawn = self._row(name, dots, panel.axis if last else Axis("", panel.axis.low), room, width, y)
            parts.append(drawn)
            if not last:
                parts.append(svg.line(0, y, width, y, "grid"))
                y += BETWEEN
        return y, "".join(parts)

    def _row(
        self, name: str, dots: Sequence[Dot], axis: Axis, room: Number, width: Number, top: Number
    ) -> tuple[Number, str]:
        """A row below `top` with its axis; returns where it ends."""
        lines = svg.wrapped(name, room - 12 if room else width)
        first = top + (0 if room else LINE * len(lines) + 4)
        bottom = first + max(LANE * max(len(dots), 1), LINE * len(lines) if room else 0) + 4
        across = self._scale(dots, axis, room, width)
        parts = [svg.words(row, 0, top + LINE * (n + 0.8), "strong") for n, row in enumerate(lines)]
        parts += bottom_axis(across, bottom, bottom - 4)
        parts += [self._dot(dot, across, first + LANE * (n + 0.5), width) for n, dot in enumerate(dots)]
        return bottom + (below(across) if axis.label else LINE + 4), "".join(parts)

    def _scale(self, dots: Sequence[Dot], axis: Axis, room: Number, width: Number) -> Scale:
        """As long as the words beside the dots allow."""
        fitted, start = axis.fitted(value for dot in dots for value in dot.values), room + 6
        unit = fitted.scale(0.0, 1.0)
        ends = [(unit(max(dot.values)), width - start - BESIDE - svg.width_of(dot.words, SMALL)) for dot in dots]
        longest = min((space / share for share, space in ends if share > 0), default=width)
        return fitted.scale(start, start + min(max(longest, LEAST * (width - room)), width - start - BESIDE))
