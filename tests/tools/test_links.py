"""Links of the Markdown files lead somewhere, and the index of the documentation names every page."""

from pathlib import Path

import pytest

from tools import check_links
from tools.check_links import anchors, broken, github_anchor, links, pages

DOCS = check_links.ROOT / "docs"


def test_every_relative_link_and_anchor_leads_somewhere() -> None:
    assert {"README.md", "docs/README.md", "results/results.md"} <= {
        path.relative_to(check_links.ROOT).as_posix() for path in pages()
    }
    assert broken(pages()) == []


def test_every_page_of_the_documentation_is_in_its_index() -> None:
    linked = {(DOCS / target.partition("#")[0]).resolve() for target in links(DOCS / "README.md")}
    missing = {path for path in DOCS.rglob("*.md") if path.resolve() not in linked} - {DOCS / "README.md"}
    assert missing == set()


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("At equal accuracy", "at-equal-accuracy"),
        ("A3P5, on one H200", "a3p5-on-one-h200"),
        ("τ and δ", "τ-and-δ"),
        ("Lost / late", "lost--late"),
        ("learning_rate", "learning_rate"),
    ],
)
def test_anchors_are_those_of_github(title: str, anchor: str) -> None:
    assert github_anchor(title) == anchor


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[a](gone.md)", "leads to nothing"),
        ("[a](#b)", "no such heading; there are here, here-1"),
        ("[a](other.md#b)", "no such heading; there are there"),
        ("[a](../../x)", "leads out of the repository"),
        ('<img src="gone.svg">', "leads to nothing"),
        ("![a](gone.svg)", "leads to nothing"),
        ("| a |\n|---|\n| [a](gone.md) |", "leads to nothing"),
        ("`[a](gone.md)`\n\n```\n[a](gone.md)\n```", None),
        ("[a](#here-1) [a](other.md#there) [a](https://example.org/#x)", None),
    ],
)
def test_links_that_lead_nowhere_are_named(
    text: str, fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_links, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"# Here\n\n## Here\n\n{text}\n")
    (tmp_path / "other.md").write_text("# There\n")
    found = broken([page])
    assert [line.rpartition(": ")[2] for line in found] == ([fault] if fault else [])
    assert anchors(page) == {"here", "here-1"}
