"""The site's navigation, its page of public names, and where it keeps files of the repository."""

import re
import sys

import pytest

import icmape
from tools.check_links import ROOT

sys.path.append(str(ROOT / "tools" / "site"))

from contents import navigation, sections
from repository_files import list_page, published, with_contents

FILES = {"results/a/x.json", "results/a/b/y.py", "results/a/page.md", "results/a/note.md", "LICENSE", "icmape/z.py"}
PAGES = {"results/a/page"}  # that Sphinx reads; the other Markdown file is shown as source


def test_the_page_of_public_names_has_all_of_them() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    shown = re.findall(r"^\.\. auto\w+:: icmape\.(\w+)$", page, re.MULTILINE)
    assert sorted(shown) == sorted(set(icmape.__all__) - {"__version__"})


def test_the_navigation_has_every_page_once() -> None:
    pages = [page for pages in sections().values() for page in pages]
    assert len(pages) == len(set(pages))
    every = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not page.startswith("..")} == every - {"README.md"}
    assert all(f"/docs/{page.removesuffix('.md')}\n" in navigation() for page in pages if not page.startswith(".."))


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("results/a", "results/a/index.html"),
        ("results/a/x.json", "results/a/x.json"),
        ("results/a/page.md", "results/a/page.html"),
        ("results/a/note.md", "results/a/note.md.html"),
        ("icmape/z.py", "icmape/z.py.html"),
        ("LICENSE", "LICENSE.html"),
    ],
)
def test_files_keep_their_paths(path: str, address: str) -> None:
    assert published(path, FILES, PAGES) == address


def test_the_list_of_a_folder_leads_to_pages() -> None:
    listed = re.findall(r'href="([^"]+)">([^<]+)<', list_page("results/a", FILES, PAGES))
    assert listed == [
        ("b/index.html", "b/"),
        ("note.md.html", "note.md"),
        ("page.html", "page.md"),
        ("x.json", "x.json"),
    ]


def test_the_list_of_a_folder_brings_what_is_below() -> None:
    linked, folders = with_contents({"results/a", "LICENSE"}, FILES)
    assert linked == FILES - {"icmape/z.py"}
    assert folders == {"results/a", "results/a/b"}
