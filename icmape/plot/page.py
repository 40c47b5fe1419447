"""A self-contained HTML page: text, pictures, tables and replays."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from icmape.io import write_atomically
from icmape.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST_DRAWING = 150_000  # bytes of an SVG; larger pictures are embedded as PNG
PIXELS = 160  # per inch of a PNG
SCREEN = 96  # pixels per inch of the page
WIDE = 6.5  # inches; wider pictures scroll on small screens
SCRIPTS = ("picture.js", "replay.js")


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
    """A table: the first column is text, the others are numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True)
class Replay:
    """Episodes to step through, from `icmape.plot.episode_replay.scene`."""

    scenes: Sequence[dict[str, Any]]


Part = Text | Picture | Grid | Replay


@dataclass(frozen=True)
class Section:
    """A heading and its parts."""

    title: str
    parts: Sequence[Part]


def write_page(path: Path, title: str, subtitle: str, sections: Sequence[Section], mark: str = "") -> Path:
    """Write the page atomically."""
    write_atomically(path, render_page(title, subtitle, sections, mark).encode(errors="backslashreplace"))
    return path


def render_page(title: str, subtitle: str, sections: Sequence[Section], mark: str = "") -> str:
    """The whole page. `mark` is a word beside the title, such as "quick"."""
    names = _names([section.title for section in sections])
    replays = any(isinstance(part, Replay) for section in sections for part in section.parts)
    script = _script() if replays else ""
    links = [f'<li><a href="#{name}">{escape(s.title)}</a></li>' for name, s in zip(names, sections, strict=True)]
    badge = f' <span class="mark">{escape(mark)}</span>' if mark else ""
    body = "\n".join(_section(section, name) for section, name in zip(sections, names, strict=True))
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
{_asset("report.css")}</style>
</head>
<body>
<header><h1>{escape(title)}{badge}</h1><p class="subtitle">{escape(subtitle)}</p></header>
<nav aria-label="Contents"><h2>Contents</h2><ol>{"".join(links)}</ol></nav>
<main>
{body}
</main>
<footer>icmape {escape(__version__)}</footer>
{tail}</body>
</html>
"""


def _policy(script: str) -> str:
    """Content security policy: nothing from outside the file, and only this script."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"'sha256-{digest}'" if script else "'none'"
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {scripts}; base-uri 'none'"


def _names(titles: Sequence[str]) -> list[str]:
    """Unique anchors."""
    names: list[str] = []
    for title in titles:
        plain = re.sub(r"\W+", "-", title.lower()).strip("-") or "section"
        name, count = plain, 1
        while name in names:
            count += 1
            name = f"{plain}-{count}"
        names.append(name)
    return names


def _section(section: Section, name: str) -> str:
    heading = f'<h2 id="{name}">{escape(section.title)}</h2>'
    parts = [_part(part, section.title) for part in section.parts]
    return "\n".join([f'<section aria-labelledby="{name}">', heading, *parts, "</section>"])


def _part(part: Part, title: str) -> str:
    match part:
        case Text(words):
            return f"<p>{escape(words)}</p>"
        case Picture(figure, caption, alt):
            return _picture(figure, caption, alt)
        case Grid(headings, rows, caption):
            return _table(headings, rows, caption, title)
        case Replay(scenes):
            return _replay(scenes)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str, title: str) -> str:
    """A table that scrolls if it is too wide."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in headings)
    body = "\n".join(
        f'<tr><th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in values) + "</tr>"
        for first, *values in rows
    )
    label = escape(f"Table: {caption or title}")
    table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
    scrolls = f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">{table}</div>'
    figcaption = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""  # outside the scrolled region
    return f"<figure>{scrolls}{figcaption}</figure>"


def _replay(scenes: Sequence[dict[str, Any]]) -> str:
    """Data of the replay script; without scripts, the endings of the episodes."""
    data = json.dumps(list(scenes), allow_nan=False, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    ends = "".join(f"<p>{escape(scene['title'])}: {escape(scene['ending'])}</p>" for scene in scenes)
    return (
        '<div class="replay" role="group" tabindex="0" aria-label="Replay: arrow keys go from round to round, digits '
        f'choose an agent, 0 the team"><noscript>{ends}</noscript>'
        f'<script type="application/json">{data}</script></div>'
    )


def _picture(figure: Figure, caption: str, alt: str) -> str:
    """An image element, so that identifiers of different drawings cannot clash."""
    width, height = (round(inches * SCREEN) for inches in figure.get_size_inches())
    drawing = _drawn(figure)
    source = (
        "data:image/svg+xml," + quote(drawing, safe=" /:;=,()+-.!*@$'?[]{}|^~")
        if len(drawing) <= LARGEST_DRAWING
        else "data:image/png;base64," + base64.b64encode(_saved(figure, "png", dpi=PIXELS)).decode()
    )
    image = f'<img src="{source}" alt="{escape(alt)}" width="{width}" height="{height}">'
    if width > WIDE * SCREEN:
        label = escape(f"Picture: {alt}")
        image = f'<div class="scroll wide" tabindex="0" role="region" aria-label="{label}">{image}</div>'
    return f'<figure><div class="card">{image}</div><figcaption>{escape(caption)}</figcaption></figure>'


def _drawn(figure: Figure) -> str:
    """A figure as SVG without metadata; deterministic."""
    text = _saved(figure, "svg", metadata={"Date": None}).decode()
    text = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", text).replace("> <", "><").strip()


def _saved(figure: Figure, kind: str, **settings: Any) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "icmape", "svg.fonttype": "path"}):
        figure.savefig(buffer, format=kind, facecolor="white", **settings)
    return buffer.getvalue()


@cache
def _script() -> str:
    """The scripts of the page."""
    return "\n(() => {\n'use strict';\n" + "\n".join(map(_asset, SCRIPTS)) + "})();\n"


@cache
def _asset(name: str) -> str:
    return files("icmape.plot").joinpath("assets", name).read_text(encoding="utf-8")
