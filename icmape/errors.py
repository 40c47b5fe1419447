"""Errors that the user can fix, each reported in one sentence."""

import difflib
import logging
from collections.abc import Iterable
from unicodedata import category

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


LONGEST = 1500
"""Letters of an error on the command line: names from files may be of any length."""
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of control, format (text direction among them) and surrogate characters, and line separators."""


def printable(text: str, keep: str = "") -> str:
    """A text with control characters as escapes such as \\x1b, so that names from files cannot steer a terminal.

    Characters in `keep`, such as a line break, stay as they are.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode() if category(char) in HIDDEN and char not in keep else char
        for char in text
    )


def error_line(error: BaseException) -> str:
    """An error as one printable line; of what is very long, the middle is left out."""
    text = printable(" ".join(str(error).split("\n")))
    return "error: " + (text if len(text) <= LONGEST else f"{text[: LONGEST - 200]} ... {text[-200:]}")


class PrintableFormatter(logging.Formatter):
    """Messages with control characters as escapes, as texts from files may be in them."""

    def format(self, record: logging.LogRecord) -> str:
        """The message; line breaks stay."""
        return printable(super().format(record), keep="\n\t")


def log_printable(level: int) -> None:
    """Log messages of a command to the terminal."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter("%(message)s"))
    logging.basicConfig(handlers=[handler], level=level)
