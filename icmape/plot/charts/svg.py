"""SVG as text: elements, numbers, and the space that words take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

Number = int | float

TEXT = 13.0  # pixels, of all words
SMALL = 12.0  # of numbers at axes
LINE = 17.0  # height of a line of words
LETTER = 0.56  # mean width of a letter by the size of the text


def element(name: str, *content: str, **attributes: object) -> str:
    """An element; `text_anchor` is written text-anchor, `class_` class, and attributes that are None are left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(content)}</{name}>" if content else f"<{name}{given}/>"


def _value(value: object) -> str:
    return short(value) if isinstance(value, Number) else escape(str(value))


def short(number: Number) -> str:
    """A coordinate with at most two decimals."""
    return f"{round(number, 2) + 0.0:.2f}".rstrip("0").rstrip(".")  # + 0.0: no negative zero


def words(text: str, x: Number, y: Number, kind: str = "", anchor: str = "start", **attributes: object) -> str:
    """A line of text on its baseline; `kind` is a class of `look.STYLE`."""
    place = None if anchor == "start" else anchor
    return element("text", escape(text), x=float(x), y=float(y), class_=kind or None, text_anchor=place, **attributes)


def title(text: str) -> str:
    """What a mark says when it is pointed at."""
    return element("title", escape(text))


def line(x1: Number, y1: Number, x2: Number, y2: Number, kind: str, **attributes: object) -> str:
    """A straight line."""
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=kind, **attributes)


def path(points: Iterable[tuple[Number, Number]], closed: bool = False) -> str:
    """The `d` of a path through points."""
    return "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points) + "Z" * closed


def width_of(text: str, size: Number = TEXT) -> Number:
    """About the width of a line of text, in pixels."""
    return len(text) * LETTER * size


def wrapped(text: str, width: Number, size: Number = TEXT) -> list[str]:
    """Lines that fit a width."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def hatching(
    x: Number, y: Number, width: Number, height: Number, gap: Number = 7.0
) -> list[tuple[Number, Number, Number, Number]]:
    """Diagonals that fill a rectangle, as ends of lines; they need no pattern and so no identifier."""
    lines = []
    offset = gap
    while offset < width + height:
        start = (x + max(0.0, offset - height), y + min(offset, height))
        end = (x + min(offset, width), y + max(0.0, offset - width))
        lines.append((*start, *end))
        offset += gap
    return lines


def stacked(blocks: Sequence[tuple[Number, str]], gap: Number = 0.0) -> tuple[Number, str]:
    """Drawings of given heights one below the other: the whole height, and the drawing."""
    top, parts = 0.0, []
    for height, body in blocks:
        parts.append(element("g", body, transform=f"translate(0 {short(top)})") if top else body)
        top += height + gap
    return max(top - gap, 0.0), "".join(parts)
