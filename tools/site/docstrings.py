"""Docstrings of public names as pages show them: sections such as Args, and signatures that a reader can take in."""

from dataclasses import is_dataclass
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring

SECTIONS = Config(napoleon_use_rtype=False)


def with_sections(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Read `Args:` and its like. The docstring of an attribute has none: a colon in it is a colon."""
    if what not in ("attribute", "data"):
        lines[:] = GoogleDocstring(lines, SECTIONS, app, what, name, thing, options).lines()


def signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, arguments: str | None, returned: str | None
) -> tuple[str | None, str | None] | None:
    """Settings with defaults that are objects are listed below their class, and only there."""
    if what == "class" and is_dataclass(thing) and arguments and ("<" in arguments or arguments.count(",") > 12):
        return "(**settings)", None
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", with_sections)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
