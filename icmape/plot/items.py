"""Named tables and plots: each is written to files and shown on pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icmape.io import write_atomically
from icmape.plot.charts import Chart
from icmape.plot.page import Drawn, Grid, Part, Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASH = "–"
DPI = 130  # of pictures of pixels


@dataclass(frozen=True)
class Table:
    """Rows of text under headings, with a note."""

    name: str
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    on_page: bool = True  # long tables are only written to files
    raw: tuple[Sequence[str], Sequence[Sequence[Any]]] | None = None  # headings and plain values for the CSV file

    def parts(self) -> list[Part]:
        """For a page."""
        return [Grid(self.headings, self.rows, self.title, self.note)]

    def shown(self) -> str:
        """On a Markdown page."""
        return self.markdown()

    def markdown(self) -> str:
        """As Markdown."""
        line = lambda cells: "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"  # noqa: E731
        ruler = "|---|" + "---:|" * (len(self.headings) - 1)
        text = [f"**{self.title}**", "", line(self.headings), ruler, *map(line, self.rows)]
        return "\n".join([*text, *(["", self.note] if self.note else []), ""])

    def csv(self) -> str:
        """As comma-separated values, with plain numbers if there are any."""
        out = io.StringIO()
        headings, rows = self.raw or (self.headings, self.rows)
        csv.writer(out, lineterminator="\n").writerows([headings, *rows])
        return out.getvalue()


@dataclass(frozen=True)
class Plot:
    """A chart; the note is a part of its caption."""

    name: str
    title: str
    chart: Chart
    note: str = ""

    @property
    def caption(self) -> str:
        """Its title, what was counted, and the note."""
        return _sentences(self.title, self.chart.below, self.note)

    def parts(self) -> list[Part]:
        """For a page."""
        return [Drawn(self.chart, _sentences(self.chart.below, self.note), self.title, self.chart.look)]

    def shown(self) -> str:
        """On a Markdown page with a folder of figures beside it."""
        return f"![{self.title}](figures/{self.name}.svg)\n\n{self.caption}"

    def save(self, folder: Path) -> Path:
        """Write NAME.svg."""
        return self.chart.save(folder / self.name)


@dataclass(frozen=True)
class Raster:
    """A picture of pixels, such as a map; the note is a part of its caption and alternative text."""

    name: str
    title: str
    figure: Figure
    note: str = ""

    @property
    def caption(self) -> str:
        """Its title and the note."""
        return _sentences(self.title, self.note)

    def parts(self) -> list[Part]:
        """For a page."""
        return [Picture(self.figure, self.caption, self.caption)]

    def shown(self) -> str:
        """On a Markdown page with a folder of figures beside it."""
        return f"![{self.title}](figures/{self.name}.png)\n\n{self.caption}"

    def save(self, folder: Path) -> Path:
        """Write NAME.png."""
        content, path = io.BytesIO(), folder / f"{self.name}.png"
        self.figure.savefig(content, format="png", dpi=DPI)
        write_atomically(path, content.getvalue())
        return path


Item = Table | Plot | Raster


def _sentences(*parts: str) -> str:
    """Parts with a point after each, and none for parts without words."""
    return " ".join(f"{part[:1].upper()}{part[1:].rstrip('.')}." for part in parts if part)


def write_items(items: Iterable[Item], folder: Path) -> list[Path]:
    """tables/NAME.md and .csv, figures/NAME.svg, or .png for pictures of pixels."""
    paths: list[Path] = []
    for item in items:
        if not isinstance(item, Table):
            paths.append(item.save(folder / "figures"))
            continue
        for kind, text in (("md", item.markdown()), ("csv", item.csv())):
            paths.append(folder / "tables" / f"{item.name}.{kind}")
            write_atomically(paths[-1], text.encode())
    return paths


def number(value: float | int | None, form: str, spread: float | None = None) -> str:
    """A number, or a dash; with its spread if there is one."""
    if value is None:
        return DASH
    return f"{value:{form}}" if spread is None else f"{value:{form}} ± {spread:{form}}"
