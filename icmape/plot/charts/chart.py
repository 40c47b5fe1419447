"""A chart: drawn at two widths on a page, of which the reader's screen shows one, and at a third in a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

from icmape.io import write_atomically
from icmape.plot.charts import svg
from icmape.plot.charts.look import STYLE
from icmape.plot.charts.svg import LINE, SMALL, Number
from icmape_agent.look import stylesheet

WIDE, NARROW = 560.0, 340.0  # pixels
BROAD = 860.0  # of a chart over the whole width of a page
FILE = 440.0  # width of a file, so that its words can be read when a phone shrinks it
COMPACT = 520.0  # below this width panels stand one below the other
PAD = 12.0  # around the drawing in a file
SWATCH = 22.0
GAP = 14.0  # between entries of a legend
PAGE_STYLE = """\
.chart { container-type: inline-size; }
.chart > svg { display: block; width: 100%; height: auto; }
.chart > svg.wide { max-width: 44rem; }
.chart > svg.broad { max-width: 56rem; }
.chart > svg.narrow { display: none; max-width: 25rem; }
@container (max-width: 30rem) { .chart > svg.wide { display: none; } .chart > svg.narrow { display: block; } }
"""
"""Which of the two drawings is seen. The width of the place counts, not that of the screen."""


class Key(NamedTuple):
    """An entry of a legend."""

    label: str
    colour: str
    dash: str = ""
    shape: str = "line"  # or "dot", "hollow", "diamond", "bar", "band", "hatch", "target"


@dataclass(frozen=True)
class Chart(ABC):
    """A drawing with a title, and words below that say what was counted. `mark` is written on it, such as "quick"."""

    title: str
    below: str = ""
    mark: str = ""
    broad: bool = field(default=False, kw_only=True)  # whether it takes the whole width of a page
    kind: ClassVar[str] = "Chart"

    @abstractmethod
    def draw(self, width: Number) -> tuple[Number, str]:
        """Height and drawing at a width."""

    @abstractmethod
    def described(self) -> str:
        """The numbers in words, for readers who do not see."""

    @property
    def look(self) -> str:
        """Its place among others: "wide" if its panels stand side by side, "tall" if it is long, or nothing."""
        return ""

    def inline(self) -> str:
        """For an HTML page with `page_style`."""
        large = self._drawn(BROAD, "wide broad") if self.broad else self._drawn(WIDE, "wide")
        return f'<div class="chart">{large}{self._drawn(NARROW, "narrow")}</div>'

    def _drawn(self, width: Number, kind: str) -> str:
        height, body = self.draw(width)
        if self.mark:
            body += svg.words(self.mark, width - 2, 12.0, "mark", "end")
        box = f"0 0 {svg.short(width)} {svg.short(height)}"
        return svg.element("svg", body, viewBox=box, class_=kind, role="img", aria_label=self.spoken)

    @property
    def spoken(self) -> str:
        """Name of the picture for screen readers."""
        parts = (f"{self.kind}: {self.title}", self.described(), self.below)
        return ". ".join(part.rstrip(".") for part in parts if part) + "."

    def file(self) -> str:
        """A file of its own, with its title and its words, in light and in dark."""
        head = f"{self.title} [{self.mark}]" if self.mark else self.title
        blocks = [_paragraph(head, FILE, "strong", svg.TEXT), self.draw(FILE)]
        if self.below:
            blocks.append(_paragraph(self.below, FILE, "tick", SMALL))
        height, body = svg.stacked(blocks, gap=10.0)
        if self.mark:
            body += svg.words(self.mark, FILE - 2, height - 2, "mark", "end")
        across, down = FILE + 2 * PAD, height + 2 * PAD
        page = svg.element("rect", width=across, height=down, class_="page")
        moved = svg.element("g", body, transform=f"translate({svg.short(PAD)} {svg.short(PAD)})")
        box = f"0 0 {svg.short(across)} {svg.short(down)}"
        content = (svg.title(self.title), svg.element("style", stylesheet() + STYLE), page, moved)
        look = {"class_": "chart", "viewBox": box, "width": across, "height": down}
        names = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria_label": self.spoken}
        return svg.element("svg", *content, **names, **look) + "\n"

    def save(self, stem: Path) -> Path:
        """Write STEM.svg."""
        path = stem.with_name(f"{stem.name}.svg")
        write_atomically(path, self.file().encode())
        return path


def page_style() -> str:
    """The rules of charts on a page that has the colours of `icmape_agent.look`."""
    return STYLE + PAGE_STYLE


def _paragraph(text: str, width: Number, kind: str, size: Number) -> tuple[Number, str]:
    lines = svg.wrapped(text, width, size)
    return LINE * len(lines), "".join(svg.words(row, 0, LINE * (n + 0.75), kind) for n, row in enumerate(lines))


def legend(keys: Sequence[Key], width: Number) -> tuple[Number, str]:
    """Entries beside each other, in as many lines as they need."""
    if not keys:
        return 0.0, ""
    x, y, parts = 0.0, 0.0, []
    for key in keys:
        lines = svg.wrapped(key.label, width - SWATCH - 6)
        space = SWATCH + 6 + max(map(svg.width_of, lines)) + GAP
        if x > 0 and x + space - GAP > width:
            x, y = 0.0, y + LINE + 2
        parts.append(_swatch(key, x, y + LINE / 2))
        parts += [svg.words(row, x + SWATCH + 6, y + LINE * (n + 0.76)) for n, row in enumerate(lines)]
        x, y = x + space, y + LINE * (len(lines) - 1)
    return y + LINE + 8, "".join(parts)


def diamond(x: Number, y: Number, colour: str, said: str = "", hollow: bool = False) -> str:
    """A square on its corner; hollow as a dot would be."""
    corners = svg.path([(x - 6, y), (x, y - 6), (x + 6, y), (x, y + 6)], closed=True)
    look = {"class_": "hollow", "stroke": colour} if hollow else {"class_": "dot", "fill": colour}
    return svg.element("path", said, d=corners, **look)


def _swatch(key: Key, x: Number, y: Number) -> str:
    middle = x + SWATCH / 2
    match key.shape:
        case "dot":
            return svg.element("circle", cx=middle, cy=y, r=5.0, fill=key.colour, class_="dot")
        case "hollow":
            return svg.element("circle", cx=middle, cy=y, r=4.0, stroke=key.colour, class_="hollow")
        case "diamond":
            return diamond(middle, y, key.colour)
        case "bar":
            return svg.element("rect", x=x + 4, y=y - 5, width=SWATCH - 8, height=10.0, fill=key.colour)
        case "band":
            return svg.element("rect", x=x, y=y - 6, width=SWATCH, height=12.0, class_="band")
        case "hatch":
            box = (x + 2, y - 6, SWATCH - 4, 12.0)
            return "".join(svg.line(*ends, "hatch") for ends in svg.hatching(*box))
        case "target":
            return svg.line(x, y, x + SWATCH, y, "target")
    dash = key.dash or None
    return svg.line(x, y, x + SWATCH, y, "curve", stroke=key.colour, stroke_dasharray=dash)
