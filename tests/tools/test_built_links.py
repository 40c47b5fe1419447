"""Links of built pages that lead nowhere are found, and those to other hosts are left alone."""

from pathlib import Path

import pytest

from tools.check_built_links import broken


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ('<a href="gone.html">a</a>', "leads to nothing"),
        ('<img src="gone.svg">', "leads to nothing"),
        ('<a href="empty">a</a>', "leads to nothing"),
        ('<a href="#there">a</a>', "no such anchor"),
        ('<a href="../folder/index.html#here">a</a>', "no such anchor"),
        ('<a href="#here">a</a> <a href="../folder/#there">a</a> <a href="../folder/index.html?q=1">a</a>', None),
        ('<a href="two%20words.txt#L3">a</a> <a href="https://a.example/#x">a</a> <a href="//a.example">a</a>', None),
        ('<a href="mailto:a@example.org">a</a> <img src="data:image/png;base64,AA">', None),
        ("<code>&lt;a href=&quot;gone.html&quot;&gt;</code>", None),
    ],
)
def test_links_that_lead_nowhere_are_named(link: str, fault: str | None, tmp_path: Path) -> None:
    (tmp_path / "pages" / "empty").mkdir(parents=True)
    (tmp_path / "folder").mkdir()
    (tmp_path / "pages" / "two words.txt").write_text("")
    (tmp_path / "folder" / "index.html").write_text('<p id="there">')
    (tmp_path / "pages" / "page.html").write_text(f'<h1 id="here">A</h1> {link}')
    found = [line.rpartition(": ") for line in broken(tmp_path)]
    assert [wrong for _, _, wrong in found] == ([fault] if fault else [])
    assert all(line[0].startswith("pages/page.html: ") for line in found)
