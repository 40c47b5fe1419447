"""Reliability diagrams: the share of right answers against the confidence, and how far chance alone would take it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from icmape.evaluation.calibration import Bin, Calibration
from icmape.plot.charts import svg
from icmape.plot.charts.chart import Chart, Key, legend
from icmape.plot.charts.frame import Frame, arranged, framed, panel_width
from icmape.plot.charts.look import method_strokes
from icmape.plot.charts.scales import Axis
from icmape.plot.charts.svg import Number

TALL, COUNTS = 172.0, 40.0  # pixels of a diagram, and of the numbers of answers below it
NORMAL = 1.96


@dataclass(frozen=True)
class Reliability(Chart):
    """A diagram for every panel, with a line for every calibration; the band belongs to the first."""

    panels: Mapping[str, Mapping[str, Calibration]] = field(default_factory=dict)
    kind: ClassVar[str] = "Reliability diagram"

    def draw(self, width: Number) -> tuple[Number, str]:
        """Height and drawing at a width."""
        labels = list(dict.fromkeys(label for curves in self.panels.values() for label in curves))
        strokes = dict(zip(labels, method_strokes(labels), strict=True))
        each = panel_width(width, len(self.panels))
        panels = [self._panel(name, curves, strokes, each) for name, curves in self.panels.items()]
        keys = [Key(label, *stroke) for label, stroke in strokes.items()]
        keys += [Key("perfect calibration; shaded: 95 % of such teams", "", shape="band")]
        return svg.stacked([legend(keys, width), arranged(panels, width)])

    def _panel(
        self, name: str, curves: Mapping[str, Calibration], strokes: Mapping[str, tuple[str, str]], width: Number
    ) -> tuple[Number, str]:
        unit = Axis("confidence", 0.0, 1.0, percent=True)
        upper = framed(
            width, TALL, replace(unit, label=""), Axis("share of right answers", 0.0, 1.0, percent=True), name
        )
        first = next(iter(curves.values()))
        diagonal = svg.line(upper.across(0), upper.down(0), upper.across(1), upper.down(1), "target")
        body = _band(first, upper) + diagonal
        body += "".join(_curve(label, found, upper, strokes[label]) for label, found in reversed(list(curves.items())))
        most = max(bin_.size for found in curves.values() for bin_ in found.bins)
        powers = [10.0**power for power in range(0, math.ceil(math.log10(max(most, 10))) + 1, 2)]
        count = Axis("answers", 0.7, max(most, 10) * 1.5, log=True, ticks=powers)
        lower = framed(width, COUNTS, unit, count, least=upper.across.start)
        bars = "".join(
            _counts(found, lower, strokes[label][0], place, len(curves))
            for place, (label, found) in enumerate(curves.items())
        )
        blocks = [(upper.height, upper.behind + upper.clipped(body)), (lower.height, lower.behind + bars)]
        return svg.stacked(blocks)

    @property
    def look(self) -> str:
        """Panels stand side by side."""
        return "wide" if len(self.panels) > 1 else ""

    def described(self) -> str:
        """The mean difference between confidence and accuracy."""
        return "; ".join(
            f"{name}: {label} ECE {found.ece:.4f}"
            for name, curves in self.panels.items()
            for label, found in curves.items()
        )


def consistency(bin_: Bin) -> tuple[Number, Number]:
    """95 % of the shares that a perfectly calibrated team would have with as many answers, which depend by episode."""
    confidence = bin_.confidence or 0.0
    chance = math.sqrt(confidence * (1 - confidence) / bin_.size)
    half = NORMAL * max(chance, bin_.error or 0.0)
    return max(confidence - half, 0.0), min(confidence + half, 1.0)


def _filled(found: Calibration) -> list[Bin]:
    return [bin_ for bin_ in found.bins if bin_.size and bin_.confidence is not None]


def _band(found: Calibration, frame: Frame) -> str:
    rows = [(bin_.confidence or 0.0, *consistency(bin_)) for bin_ in _filled(found)]
    upper = [(frame.across(x), frame.down(high)) for x, _, high in rows]
    lower = [(frame.across(x), frame.down(low)) for x, low, _ in reversed(rows)]
    return svg.element("path", d=svg.path([*upper, *lower], closed=True), class_="band")


def _curve(label: str, found: Calibration, frame: Frame, stroke: tuple[str, str]) -> str:
    colour, dash = stroke
    rows = [(bin_, frame.across(bin_.confidence or 0.0), frame.down(bin_.accuracy or 0.0)) for bin_ in _filled(found)]
    line = svg.path((x, y) for _, x, y in rows)
    parts = [svg.element("path", d=line, class_="curve", stroke=colour, stroke_dasharray=dash or None)]
    for bin_, x, y in rows:
        said = svg.title(f"{label}: {bin_.size:,} answers, confidence {bin_.confidence:.3f}, right {bin_.accuracy:.3f}")
        parts.append(svg.element("circle", said, cx=x, cy=y, r=4.0, fill=colour, class_="dot"))
    return "".join(parts)


def _counts(found: Calibration, frame: Frame, colour: str, place: int, of: int) -> str:
    parts = []
    for bin_ in found.bins:
        if bin_.size:
            left, right, y = frame.across(bin_.low), frame.across(bin_.high), frame.down(bin_.size)
            wide = (right - left) * 0.84 / of
            x = left + (right - left) * 0.08 + place * wide
            said = svg.title(f"{bin_.size:,} answers")
            parts.append(
                svg.element("rect", said, x=x, y=y, width=wide * 0.92, height=frame.down.start - y, fill=colour)
            )
    return "".join(parts)
