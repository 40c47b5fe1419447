"""Links of the pages to files and folders of the repository: they lead to copies of them, at the same paths.

Text files become pages with highlighted source, folders become lists. Only files that git tracks are published.
"""

import html
import os
import shutil
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).parent.parent.parent
SOURCES = {"", ".acl", ".js", ".md", ".py", ".toml"}
"""Suffixes of files that get a page; all others are copied for the browser to show or to save."""


def tracked() -> set[str]:
    """All files of the repository, by path."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return set(listed.stdout.split("\0")) - {""}


def is_folder(path: str, files: set[str]) -> bool:
    """Whether files of the repository are below this path."""
    return any(name.startswith(f"{path}/") for name in files)


def published(path: str, files: set[str], pages: Collection[str]) -> str:
    """Where a file or folder of the repository is on the site. `pages` are the Markdown files that Sphinx reads."""
    if is_folder(path, files):
        return f"{path}/index.html"
    if path.endswith(".md") and path.removesuffix(".md") in pages:
        return f"{path.removesuffix('.md')}.html"
    return f"{path}.html" if PurePosixPath(path).suffix in SOURCES else path


class RepositoryLinks(SphinxTransform):
    """Turns links to files and folders that are not pages into links to what the site holds at their paths."""

    default_priority = 870  # before Sphinx collects downloads (880)

    def apply(self, **kwargs: Any) -> None:
        """Replace the links of one page, and remember what they lead to."""
        page = self.env.docname
        files = self.env.repository_files  # type: ignore[attr-defined]
        linked: set[str] = set()
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("reftype") == "myst" and not node.get("refdomain"):
                self.replace(node, page, files, linked)
        for node in list(self.document.findall(addnodes.download_reference)):
            self.replace(node, page, files, linked)
        self.env.repository_links[page] = linked  # type: ignore[attr-defined]

    def replace(self, node: nodes.Element, page: str, files: set[str], linked: set[str]) -> None:
        """Replace a link if the repository has its target; Sphinx reports the others."""
        target = os.path.normpath(PurePosixPath(page).parent / node["reftarget"])
        if target not in files and not is_folder(target, files):
            return
        linked.add(target)
        address = os.path.relpath(published(target, files, self.env.found_docs), PurePosixPath(page).parent)
        reference = nodes.reference("", "", refuri=address, internal=True)
        reference += node.children
        node.replace_self(reference)


def with_contents(linked: set[str], files: set[str]) -> tuple[set[str], set[str]]:
    """All files and folders that links lead to, directly or through the list of a folder."""
    folders = {path for path in linked if is_folder(path, files)}
    below = {name for name in files for folder in folders if name.startswith(f"{folder}/")}
    parents = {str(parent) for name in below for parent in PurePosixPath(name).parents}
    folders |= {parent for parent in parents if any(parent.startswith(f"{folder}/") for folder in folders)}
    return (linked & files) | below, folders


def source_page(path: str) -> str:
    """The highlighted text of a file."""
    try:
        lexer = get_lexer_for_filename(path)
    except ClassNotFound:
        lexer = TextLexer()
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"<h1>{html.escape(path)}</h1>{highlight(text, lexer, HtmlFormatter())}"


def list_page(folder: str, files: set[str], pages: Collection[str]) -> str:
    """The names in a folder, with links."""
    below = sorted({name[len(folder) + 1 :].partition("/")[0] for name in files if name.startswith(f"{folder}/")})
    rows = []
    for name in below:
        path = f"{folder}/{name}"
        address = os.path.relpath(published(path, files, pages), folder)
        shown = f"{name}/" if is_folder(path, files) else name
        rows.append(f'<li><a href="{html.escape(address)}">{html.escape(shown)}</a></li>')
    return f"<h1>{html.escape(folder)}</h1><ul>{''.join(rows)}</ul>"


def extra_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Pages of linked source files and folders; other linked files are copied."""
    files, links = app.env.repository_files, app.env.repository_links  # type: ignore[attr-defined]
    pages = app.env.found_docs
    linked, folders = with_contents(set().union(*links.values()), files)
    for folder in sorted(folders):
        if f"{folder}/index.html" not in files:
            yield f"{folder}/index", {"title": folder, "body": list_page(folder, files, pages)}, "page.html"
    for path in sorted(linked):
        if published(path, files, pages) == path:
            target = Path(app.outdir) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, target)
        elif published(path, files, pages) == f"{path}.html":
            yield path, {"title": path, "body": source_page(path)}, "page.html"


def start(app: Sphinx, env: BuildEnvironment, names: list[str]) -> None:
    """List the repository's files once a build."""
    env.repository_files = tracked()  # type: ignore[attr-defined]
    if not hasattr(env, "repository_links"):
        env.repository_links = {}  # type: ignore[attr-defined]


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Forget the links of a page that is read again or gone."""
    getattr(env, "repository_links", {}).pop(page, None)


def home(app: Sphinx, error: Exception | None) -> None:
    """The front page at the address where web servers look for it."""
    if error is None and app.builder.format == "html":
        shutil.copyfile(Path(app.outdir) / "README.html", Path(app.outdir) / "index.html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_transform(RepositoryLinks)
    app.connect("env-before-read-docs", start)
    app.connect("env-purge-doc", forget)
    app.connect("html-collect-pages", extra_pages)
    app.connect("build-finished", home)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
