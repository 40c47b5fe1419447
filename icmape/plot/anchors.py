"""Names of the headings of a page, for links to them."""

import re
from collections.abc import Sequence


def names(titles: Sequence[str]) -> list[str]:
    """Unique anchors."""
    taken: list[str] = []
    for title in titles:
        plain = anchor(title)
        name, count = plain, 1
        while name in taken:
            count += 1
            name = f"{plain}-{count}"
        taken.append(name)
    return taken


def anchor(title: str) -> str:
    """A title as a link's name."""
    return re.sub(r"\W+", "-", title.lower()).strip("-") or "section"
