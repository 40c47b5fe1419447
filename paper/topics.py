"""A page by question: for each problem, what is asked about it, with charts in sight and tables folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from icmape.plot.items import DASH, Item, Table
from icmape.plot.page import Columns, Fold, Heading, Part, Replay, Section, Text
from paper.collected import NOT_RUN


@dataclass(frozen=True)
class Topic:
    """A question: words, replays, items that are seen, and items in a fold."""

    title: str
    words: Sequence[str] = ()
    items: Sequence[Item] = ()
    folded: Sequence[Item] = ()
    scenes: Sequence[dict[str, Any]] = ()
    columns: bool = True  # whether items stand in columns
    fold: str = "Tables"
    after: Sequence[str] = ()  # words below the items

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.words or self.items or self.folded or self.scenes or self.after)

    def parts(self) -> list[Part]:
        """For an HTML page."""
        seen = [part for item in self.items for part in item.parts()]
        folded = [part for item in _on_page(self.folded) for part in item.parts()]
        return [
            *([Heading(self.title)] if self.title else []),
            *map(Text, self.words),
            *([Replay(list(self.scenes))] if self.scenes else []),
            *([Columns(seen)] if seen and self.columns else seen),
            *map(Text, self.after),
            *([Fold(self.fold, folded)] if folded else []),
        ]

    def markdown(self) -> str:
        """For a Markdown page with a folder of figures beside it; it has no replays."""
        shown = [[item.shown() for item in _on_page(items)] for items in (self.items, self.folded)]
        blocks = [*self.words, *shown[0], *self.after, *shown[1]]
        head = [f"### {self.title}"] if self.title and blocks else []
        return "\n\n".join([*head, *blocks])


def beside(first: Topic, second: Topic) -> Topic:
    """Two questions with few figures, whose figures stand side by side."""
    title = f"{first.title.removesuffix('?')}, and {second.title[:1].lower()}{second.title[1:]}"
    words, items, folded = (
        (*a, *b) for a, b in zip(*((t.words, t.items, t.folded) for t in (first, second)), strict=True)
    )
    return replace(first, title=title, words=words, items=items, folded=folded)


@dataclass(frozen=True)
class Problem:
    """A heading of the page, with its questions."""

    title: str
    topics: Sequence[Topic]

    @property
    def items(self) -> list[Item]:
        """All items, which are files of their own."""
        return [item for topic in self.topics for item in (*topic.items, *topic.folded)]

    def section(self) -> Section:
        """For an HTML page."""
        return Section(self.title, [part for topic in self._filled for part in topic.parts()])

    def markdown(self) -> str:
        """For a Markdown page."""
        return "\n\n".join([f"## {self.title}", *(text for topic in self._filled if (text := topic.markdown()))]) + "\n"

    @property
    def _filled(self) -> list[Topic]:
        return [topic for topic in self.topics if not topic.empty]


def _on_page(items: Sequence[Item]) -> list[Item]:
    """Items without long tables, and tables without rows of what was not run."""
    return [_run(item) if isinstance(item, Table) else item for item in items if _shown(item)]


def _shown(item: Item) -> bool:
    return not isinstance(item, Table) or item.on_page


def _run(table: Table) -> Table:
    rows = [row for row in table.rows if not set(row[1:]) <= {DASH, NOT_RUN, ""}]
    return replace(table, rows=rows) if rows else table
