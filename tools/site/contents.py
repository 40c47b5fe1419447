"""The site's navigation: pages by kind, in the order in which docs/README.md links them."""

import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent.parent
INDEX = "docs/README.md"


def sections() -> dict[str, list[str]]:
    """The headings of the index and the pages below each."""
    result: dict[str, list[str]] = {}
    heading = "Overview"
    for line in (ROOT / INDEX).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:]
        for target in re.findall(r"\]\(([^)#]+\.md)\)", line):
            pages = result.setdefault(heading, [])
            if target not in pages:
                pages.append(target)
    return result


def navigation() -> str:
    """Tables of contents that readers see in the sidebar only."""
    blocks = []
    for heading, pages in sections().items():
        names = [f"/docs/{page.removesuffix('.md')}" for page in pages]
        if heading == "Overview":
            names.insert(0, "/docs/README")
        if heading == "Results":
            names.append("/results/results")
        rows = "\n".join(names)
        blocks.append(f"```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{rows}\n```")
    blocks.append("```{toctree}\n:hidden:\n:caption: Project\n\n/CONTRIBUTING\n/CHANGELOG\n```")
    return "\n\n".join(blocks)


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """The front page holds the tables of contents."""
    if page == app.config.root_doc:
        source[0] += f"\n\n{navigation()}\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", add_navigation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
