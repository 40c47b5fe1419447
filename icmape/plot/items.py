"""Named tables and plots: each is written to files and shown on pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icmape.io import write_atomically
from icmape.plot.figures.style import save_figure
from icmape.plot.page import Grid, Part, Picture, Replay, Section, Text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASH = "–"


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
    """A figure; the note is its caption and alternative text."""

    name: str
    title: str
    figure: Figure
    note: str = ""


Item = Table | Plot


@dataclass(frozen=True)
class Chapter:
    """Items with a title, paragraphs before them and replays after them."""

    title: str
    items: Sequence[Item]
    words: Sequence[str] = ()
    scenes: Sequence[dict] = ()

    @property
    def shown(self) -> list[Item]:
        """Items that are shown on pages."""
        return [item for item in self.items if isinstance(item, Plot) or item.on_page]

    def section(self) -> Section:
        """For an HTML page."""
        parts: list[Part] = [Text(words) for words in self.words]
        for item in self.shown:
            caption = f"{item.title}. {item.note}" if item.note else item.title
            if isinstance(item, Table):
                parts.append(Grid(item.headings, item.rows, caption))
            else:
                parts.append(Picture(item.figure, caption, caption))
        return Section(self.title, [*parts, *([Replay(list(self.scenes))] if self.scenes else [])])

    def markdown(self) -> str:
        """For a Markdown page with a folder of figures beside it."""
        blocks = [f"## {self.title}", *self.words]
        for item in self.shown:
            if isinstance(item, Table):
                blocks.append(item.markdown())
            else:
                blocks.append(f"![{item.title}](figures/{item.name}.png)\n\n{item.title}. {item.note}".rstrip())
        return "\n\n".join(blocks) + "\n"


def write_items(items: Iterable[Item], folder: Path) -> list[Path]:
    """tables/NAME.md and .csv, figures/NAME.png and .svg."""
    paths: list[Path] = []
    for item in items:
        if isinstance(item, Plot):
            paths += save_figure(item.figure, folder / "figures" / item.name)
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
