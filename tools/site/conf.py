"""The documentation as a site: `make site` writes it to site/. Pages keep their paths in the repository."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from icmape_agent.look import DARK, LIGHT  # noqa: E402
from icmape_agent.version import __version__  # noqa: E402

project = "icmape"
version = release = __version__
html_title = f"icmape {__version__}"
copyright = "icmape contributors"
html_show_sphinx = False
extensions = ["myst_parser", "sphinx.ext.autodoc", "contents", "docstrings", "repository_files"]

root_doc = "README"
include_patterns = ["*.md", "docs/**", "results/*.md", "results/*/*.md"]
exclude_patterns = ["results/tables/**", "**/.*"]
suppress_warnings = ["misc.highlighting_failure", "myst.header", "toc.not_included"]

myst_enable_extensions = ["html_image"]
myst_heading_anchors = 4
myst_heading_slug_func = "tools.check_links.github_anchor"

default_role = "code"
smartquotes = False  # --option stays as it is
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True, "undoc-members": False, "exclude-members": "RENAMED"}
python_maximum_signature_line_length = 88

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["narrow.css"]
html_copy_source = False
html_show_sourcelink = False


def colours(look: dict[str, str]) -> dict[str, str]:
    """The theme's variables in the colours of all other pages."""
    return {
        "color-brand-primary": look["accent"],
        "color-brand-content": look["accent"],
        "color-brand-visited": look["accent"],
        "color-background-primary": look["page"],
        "color-background-secondary": look["panel"],
        "color-background-border": look["line"],
        "color-foreground-primary": look["ink"],
        "color-foreground-secondary": look["soft"],
        "color-foreground-muted": look["soft"],
    }


html_theme_options = {
    "light_css_variables": colours(dict(LIGHT)),
    "dark_css_variables": colours(dict(DARK)),
    "navigation_with_keys": True,
}
