"""Relative links and anchors of the Markdown files in this repository: python -m tools.check_links."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[1]
IN_HTML = re.compile(r'(?:src|href)="([^"]+)"')


def github_anchor(title: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


@cache
def tokens(path: Path) -> list[Token]:
    """What a Markdown file consists of."""
    return MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))


def words(heading: Token) -> str:
    """The text of a heading without its markup."""
    return "".join(part.content for part in heading.children or [] if part.type in ("text", "code_inline"))


@cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors of a page; a title that comes again gets a number."""
    seen: Counter[str] = Counter()
    result = set()
    page = tokens(path)
    for opening, content in pairwise(page):
        if opening.type == "heading_open":
            name = github_anchor(words(content))
            result.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return frozenset(result)


def links(path: Path) -> Iterator[str]:
    """Targets of the links and pictures of a page, without those in code."""
    for block in tokens(path):
        for part in [block, *(block.children or [])]:
            if part.type in ("link_open", "image"):
                yield unquote(str(part.attrs.get("href") or part.attrs.get("src") or ""))
            elif part.type in ("html_block", "html_inline"):
                yield from IN_HTML.findall(part.content)


def fault(path: Path, target: str) -> str | None:
    """What is wrong with a link of a page."""
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = target.partition("#")
    led = (path.parent / name).resolve() if name else path
    if not led.is_relative_to(ROOT.resolve()):
        return "leads out of the repository"
    if not led.exists():
        return "leads to nothing"
    if anchor and led.suffix == ".md" and anchor not in anchors(led):
        return f"no such heading; there are {', '.join(sorted(anchors(led)))}"
    return None


def pages() -> list[Path]:
    """All Markdown files that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists()]


def broken(paths: list[Path]) -> list[str]:
    """A line for every link that leads nowhere."""
    faults = ((path, target, fault(path, target)) for path in paths for target in links(path))
    return [f"{path.relative_to(ROOT)}: {target}: {wrong}" for path, target, wrong in faults if wrong]


def main() -> None:
    """The command; exit code 1 if a link leads nowhere."""
    found = broken(pages())
    print("\n".join(found) or f"{len(pages())} pages: every link leads somewhere")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
