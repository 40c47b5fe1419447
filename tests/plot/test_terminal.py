"""Texts from files are shown as texts: they steer no terminal and are no markup."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from icmape.cli import main
from icmape.errors import UserError, error_line, printable
from icmape.plot import terminal
from icmape.plot.terminal import SafeConsole, say

STEERING = {
    "escape": ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
    "title of the window": ("\x1b]0;mine\x07", r"\x1b]0;mine\x07"),
    "one-byte CSI": ("\x9b2J", r"\x9b2J"),
    "carriage return": ("kept\rgone", r"kept\rgone"),
    "backspace": ("no\x08\x08yes", r"no\x08\x08yes"),
    "delete": ("\x7f", r"\x7f"),
    "NUL": ("\x00", r"\x00"),
    "right to left": ("safe\u202efdp.exe", r"safe\u202efdp.exe"),
    "isolate": ("\u2066a\u2069", r"\u2066a\u2069"),
    "right-to-left mark": ("\u200f", r"\u200f"),
    "zero width": ("a\u200bb", r"a\u200bb"),
    "line separator": ("a\u2028b", r"a\u2028b"),
    "half a surrogate pair": ("\ud800", r"\ud800"),
    "byte that is not UTF-8": ("\udc9b", r"\udc9b"),
}


def test_an_error_that_repeats_a_very_long_name_is_cut_in_the_middle():
    line = error_line(UserError(f"unknown {'x' * 100_000}: did you mean y?"))
    assert line.startswith("error: unknown xxx")
    assert line.endswith("did you mean y?")
    assert len(line) < 1600


@pytest.mark.parametrize("name", STEERING)
def test_control_characters_are_shown_as_escapes(name, monkeypatch):
    given, shown = STEERING[name]
    assert printable(given) == shown
    assert error_line(UserError(given)) == f"error: {shown}"
    stream = io.StringIO()
    monkeypatch.setattr(terminal, "out", SafeConsole(file=stream, width=60, force_terminal=True, color_system=None))
    say(given)
    table = Table("file")
    table.add_row(given)
    terminal.out.print(table)
    written = stream.getvalue()
    assert written.count(shown) == 2
    assert printable(written, keep="\n") == written  # nothing else in it either


@pytest.mark.parametrize("text", ["plain", "τ = 5.8 ± 0.1", "naïve 測定 µg/L", "emoji 🙂", "a\u00a0b"])
def test_ordinary_text_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    "text", ["[red]name[/red]", "[link=https://example.org]x[/link]", "[/]", ":smile:", "\\[bold]"]
)
def test_markup_is_text(text):
    stream = io.StringIO()
    console = SafeConsole(file=stream, width=80, force_terminal=True, color_system="truecolor", highlight=False)
    table = Table(text, title=text, box=None)
    table.add_row(text)
    console.print(text)
    console.print(table)
    assert stream.getvalue().count(text) == 4
    assert "example.org\x1b" not in stream.getvalue()


def test_the_console_of_all_commands_is_the_safe_one():
    assert isinstance(terminal.out, SafeConsole)
    assert issubclass(SafeConsole, Console)


def test_an_error_is_one_printable_line(capsys):
    """The name of a file may hold anything, a line break and a colour among it."""
    assert main(["evaluate", "no\nerror: forged\x1b[2J"]) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert r"error: forged\x1b[2J" in shown
