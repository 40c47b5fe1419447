"""A self-contained HTML page: text, pictures, tables and replays."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from icmape.io import write_atomically
from icmape.plot.anchors import anchor, names
from icmape.plot.charts import page_style
from icmape.plot.embedded import picture
from icmape.version import __version__
from icmape_agent.look import stylesheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCRIPTS = ("picture.js", "map.js", "columns.js", "replay.js")


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str


@dataclass(frozen=True)
class Picture:
    """A figure with a caption and an alternative text."""

    figure: Figure
    caption: str
    alt: str


@dataclass(frozen=True)
class Grid:
    """A table with its title above: the first column is text, the others are numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    note: str = ""  # below


@dataclass(frozen=True)
class Replay:
    """Episodes to step through, from `icmape.plot.episode_replay.scene`. The first may play once by itself."""

    scenes: Sequence[dict[str, Any]]
    plays_itself: bool = False


@dataclass(frozen=True)
class Card:
    """A number with its name above and a remark below. Its tone is "good", "bad" or nothing."""

    name: str
    value: str
    remark: str
    tone: str = ""


@dataclass(frozen=True)
class Cards:
    """Cards side by side."""

    cards: Sequence[Card]
    name: str = ""


@runtime_checkable
class Inline(Protocol):
    """A drawing that writes itself as elements of the page, which follow its theme."""

    def inline(self) -> str:
        """As HTML."""


@dataclass(frozen=True)
class Drawn:
    """A drawing with a caption below, and a title above it if there is one."""

    drawing: Inline
    caption: str
    title: str = ""
    look: str = ""  # in columns: "wide" for half of the width, "tall" for two rows


@dataclass(frozen=True)
class Fold:
    """Parts that a reader may open."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Heading:
    """A title within a section, with a link in the contents."""

    title: str


@dataclass(frozen=True)
class Columns:
    """Figures in two columns (wide ones) or three where there is space, else below each other."""

    parts: Sequence[Part]


Part = Text | Picture | Grid | Replay | Cards | Drawn | Fold | Heading | Columns


@dataclass(frozen=True)
class Section:
    """A heading and its parts."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Opening:
    """What comes before the contents: a line above the title, a sentence below it, and parts.

    `explanation` stands between title and sentence, if there is one.
    """

    above: str
    sentence: str
    parts: Sequence[Part]
    explanation: str = ""


def write_page(
    path: Path, title: str, subtitle: str, sections: Sequence[Section], mark: str = "", opening: Opening | None = None
) -> Path:
    """Write the page atomically."""
    text = render_page(title, subtitle, sections, mark, opening)
    write_atomically(path, text.encode(errors="backslashreplace"))
    return path


def render_page(
    title: str, subtitle: str, sections: Sequence[Section], mark: str = "", opening: Opening | None = None
) -> str:
    """The whole page. `mark` is a word beside the title, such as "quick"."""
    links_to = names([section.title for section in sections])
    parts = [*(opening.parts if opening else ()), *(part for section in sections for part in section.parts)]
    script = _script() if any(isinstance(part, Replay) for part in parts) else ""
    links = [_link(section, name) for name, section in zip(links_to, sections, strict=True)]
    sided = any(isinstance(part, Heading) for section in sections for part in section.parts)
    badge = f' <span class="mark">{escape(mark)}</span>' if mark else ""
    first = "\n".join(_part(part, title) for part in opening.parts) if opening else ""
    body = "\n".join(_section(section, name) for section, name in zip(sections, links_to, strict=True))
    tail = f"<script>{script}</script>\n" if script else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{stylesheet()}{_asset("report.css")}{page_style()}</style>
</head>
<body{' class="sided"' * sided}>
{_head(title, subtitle, badge, opening)}
{first}
<nav aria-label="Contents"><h2>Contents</h2><ol>{"".join(links)}</ol></nav>
<main>
{body}
</main>
<footer>icmape {escape(__version__)}</footer>
{tail}</body>
</html>
"""


def _head(title: str, subtitle: str, badge: str, opening: Opening | None) -> str:
    """The title; what was counted stands below it, or above it where a page opens with a sentence."""
    heading = f"<h1>{escape(title)}{badge}</h1>"
    if opening is None:
        return f'<header>{heading}<p class="subtitle">{escape(subtitle)}</p></header>'
    above = f'<p class="above">{escape(opening.above)} · <span class="subtitle">{escape(subtitle)}</span></p>'
    about = f'<p class="about">{escape(opening.explanation)}</p>' if opening.explanation else ""
    return f'<header>{above}{heading}{about}<p class="verdict">{escape(opening.sentence)}</p></header>'


def _policy(script: str) -> str:
    """Content security policy: nothing from outside the file, and only this script."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"'sha256-{digest}'" if script else "'none'"
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {scripts}; base-uri 'none'"


def _link(section: Section, name: str) -> str:
    """A section in the contents, with its headings."""
    headings = [part.title for part in section.parts if isinstance(part, Heading)]
    items = "".join(f'<li><a href="#{anchor(f"{section.title} {one}")}">{escape(one)}</a></li>' for one in headings)
    below = f"<ol>{items}</ol>" if items else ""
    return f'<li><a href="#{name}">{escape(section.title)}</a>{below}</li>'


def _section(section: Section, name: str) -> str:
    heading = f'<h2 id="{name}">{escape(section.title)}</h2>'
    parts = [_part(part, section.title) for part in section.parts]
    return "\n".join([f'<section aria-labelledby="{name}">', heading, *parts, "</section>"])


def _part(part: Part, title: str) -> str:
    match part:
        case Text(words):
            return f"<p>{escape(words)}</p>"
        case Picture(figure, caption, alt):
            return picture(figure, caption, alt)
        case Grid(headings, rows, caption, note):
            return _table(headings, rows, caption, note, title)
        case Replay(scenes, plays_itself):
            return _replay(scenes, plays_itself)
        case Cards(cards, name):
            return _cards(cards, name)
        case Drawn(drawing, caption, "", look):
            return f'<figure class="{look}">{drawing.inline()}<figcaption>{escape(caption)}</figcaption></figure>'
        case Drawn(drawing, caption, above, look):
            head, below = f'<figcaption class="title">{escape(above)}</figcaption>', f"<p>{escape(caption)}</p>"
            return f'<figure class="{look}">{head}{drawing.inline()}{below if caption else ""}</figure>'
        case Heading(name):
            return f'<h3 id="{anchor(f"{title} {name}")}">{escape(name)}</h3>'
        case Columns(parts):
            inside = "\n".join(_part(part, title) for part in parts)
            return f'<div class="columns">{inside}</div>'
        case Fold(name, parts):
            inside = "\n".join(_part(part, name) for part in parts)
            return f"<details><summary>{escape(name)}</summary>\n{inside}</details>"


def _cards(cards: Sequence[Card], name: str) -> str:
    heading = f"<h2>{escape(name)}</h2>" if name else ""
    items = "".join(
        f'<div class="fact {card.tone}"><dt>{escape(card.name)}</dt><dd class="value">{escape(card.value)}</dd>'
        f"<dd>{escape(card.remark)}</dd></div>"
        for card in cards
    )
    return f'{heading}<dl class="facts">{items}</dl>'


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str, note: str, title: str) -> str:
    """A table that scrolls if it is too wide."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in headings)
    body = "\n".join(
        f'<tr><th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in values) + "</tr>"
        for first, *values in rows
    )
    label = escape(f"Table: {caption or title}")
    table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
    scrolls = f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">{table}</div>'
    figcaption = f'<figcaption class="title">{escape(caption)}</figcaption>' if caption else ""  # does not scroll
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<figure>{figcaption}{scrolls}{below}</figure>"


def _replay(scenes: Sequence[dict[str, Any]], plays_itself: bool) -> str:
    """Data of the replay script; without scripts, the endings of the episodes."""
    data = json.dumps(list(scenes), allow_nan=False, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    ends = "".join(f"<p>{escape(scene['title'])}: {escape(scene['ending'])}</p>" for scene in scenes)
    auto = " data-autoplay" * plays_itself
    return (
        f'<div class="replay"{auto} role="group" tabindex="0" aria-label="Replay: arrow keys go'
        f' from round to round, digits choose an agent, 0 the team"><noscript>{ends}</noscript>'
        f'<script type="application/json">{data}</script></div>'
    )


@cache
def _script() -> str:
    """The scripts of the page."""
    return "\n(() => {\n'use strict';\n" + "\n".join(map(_asset, SCRIPTS)) + "})();\n"


@cache
def _asset(name: str) -> str:
    return files("icmape.plot").joinpath("assets", name).read_text(encoding="utf-8")
