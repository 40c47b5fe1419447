"""The file: styles, scripts and the contents of all teams in one page, which asks no network for anything."""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path

from icmape.app.contents import Contents
from icmape.io import write_atomically
from icmape.version import __version__
from icmape_agent.javascript import RUNTIME_FILE
from icmape_agent.look import stylesheet

SHARED = ("views.js", "fields.js")  # with the pages of `icmape serve`
SCRIPTS = ("games.js", "pictures.js", "answers.js", "play.js", "whatif.js", "app.js")
LARGEST = 3_000_000
"""Bytes that an app of the shipped teams may have."""


def write_app(path: Path, teams: Sequence[Contents]) -> Path:
    """Write the file atomically."""
    write_atomically(path, render_app(teams).encode())
    return path


def render_app(teams: Sequence[Contents]) -> str:
    """The whole file."""
    script = scripts()
    data = "\n".join(
        f'<script type="application/octet-stream" class="team" data-name="{escape(team.name)}">'
        f"{base64.b64encode(team.data).decode()}</script>"
        for team in teams
    )
    about = json.dumps({"version": __version__}).replace("<", "\\u003c")
    page = files("icmape.app").joinpath("assets", "app.html").read_text(encoding="utf-8")
    parts = {
        "POLICY": _policy(script),
        "STYLES": stylesheet() + _shared("page.css") + _own("app.css"),
        "DATA": f'{data}\n<script type="application/json" id="about">{about}</script>',
        "SCRIPTS": script,
    }
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text)
    return page


@cache
def scripts() -> str:
    """All code of the page."""
    shared = [_shared(name) for name in SHARED]
    return "\n".join([RUNTIME_FILE.read_text(encoding="utf-8"), *shared, *map(_own, SCRIPTS)])


def _policy(script: str) -> str:
    """Content security policy: nothing from outside the file, and only this script."""
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    )


def _own(name: str) -> str:
    return files("icmape.app").joinpath("assets", name).read_text(encoding="utf-8")


def _shared(name: str) -> str:
    return files("icmape_agent.server").joinpath("pages", name).read_text(encoding="utf-8")
