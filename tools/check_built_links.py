"""Whether the links of built pages lead to files and anchors that were built: python -m tools.check_built_links FOLDER.

`tools.check_links` checks the links that people write; pages also hold lists and source files that the site makes.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ADDRESSES = ("href", "src")
ANCHORS = ("id", "name")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


class Page(HTMLParser):
    """The addresses that a page leads to, and its anchors."""

    def __init__(self, text: str):
        super().__init__()
        self.addresses: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect both."""
        self.addresses += [value for name, value in attrs if name in ADDRESSES and value]
        self.anchors |= {value for name, value in attrs if name in ANCHORS and value}


@cache
def page(path: Path) -> Page:
    """A built page."""
    return Page(path.read_text(encoding="utf-8"))


def fault(path: Path, address: str) -> str | None:
    """What is wrong with an address on a page."""
    if ELSEWHERE.match(address):
        return None
    name, _, anchor = address.partition("#")
    name = unquote(name.partition("?")[0])
    led = path.parent / name if name else path
    led = led / "index.html" if led.is_dir() else led
    if not led.is_file():
        return "leads to nothing"
    if anchor and led.suffix == ".html" and unquote(anchor) not in page(led.resolve()).anchors:
        return "no such anchor"
    return None


def broken(folder: Path) -> Iterator[str]:
    """A line for every address that leads nowhere."""
    for path in sorted(folder.resolve().rglob("*.html")):
        for address in dict.fromkeys(page(path).addresses):
            if wrong := fault(path, address):
                yield f"{path.relative_to(folder.resolve())}: {address}: {wrong}"


def main() -> None:
    """The command; exit code 1 if a link leads nowhere."""
    folder = Path(sys.argv[1])
    found, pages = list(broken(folder)), sum(1 for _ in folder.rglob("*.html"))
    print("\n".join(found) or f"{pages} built pages: every link leads somewhere")
    sys.exit(bool(found) or not pages)


if __name__ == "__main__":
    main()
