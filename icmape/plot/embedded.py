"""Pictures of matplotlib inside a page: drawings as SVG, large ones as pixels."""

from __future__ import annotations

import base64
import io
import re
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST_DRAWING = 150_000  # bytes of an SVG; larger pictures are embedded as PNG
PIXELS = 160  # per inch of a PNG
SCREEN = 96  # pixels per inch of the page
WIDE = 6.5  # inches; wider pictures scroll on small screens


def picture(figure: Figure, caption: str, alt: str) -> str:
    """An image element, so that identifiers of different drawings cannot clash."""
    width, height = (round(inches * SCREEN) for inches in figure.get_size_inches())
    drawing = drawn(figure)
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


def drawn(figure: Figure) -> str:
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
