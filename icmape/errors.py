"""Errors that the user can fix, each reported in one sentence."""

import difflib
from collections.abc import Iterable

from icmape_agent.errors import UserError

__all__ = ["UserError", "known_name", "nearest"]


def nearest(name: str, options: Iterable[str]) -> str:
    """A clause that suggests the options closest to an unknown name."""
    options = sorted(options)
    close = difflib.get_close_matches(name, options, n=3, cutoff=0.7) or options
    return "did you mean " + " or ".join(close) + "?" if len(close) <= 3 else "known: " + ", ".join(options)


def known_name(name: str, options: Iterable[str], what: str) -> str:
    """The name, if it is among the options; else an error with the nearest ones."""
    if name not in options:
        raise UserError(f"unknown {what} {name!r}: {nearest(name, options)}")
    return name
