"""Output of commands, and checks of output paths."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from icmape.errors import UserError, printable
from icmape.io import write_atomically


class SafeConsole(Console):
    """A console on which texts from files are only text: no markup, and control characters as escapes."""

    def __init__(self, **options: Any):
        super().__init__(**{"markup": False, "emoji": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        """A string as text, before its width is measured."""
        return super().render_str(printable(text, keep="\n\t"), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The pieces of what is printed. Those of rich itself that steer the terminal are marked so."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text, keep="\n\t"), piece.style)


out = SafeConsole()


def say(text: str) -> None:
    """Print a text without wrapping and colours."""
    out.print(text, soft_wrap=True, highlight=False)


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """A progress bar on a terminal, as a function that advances it; None elsewhere."""
    if not out.is_terminal or total == 0:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=out, transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda count: bar.advance(task, count)


def check_file(path: Path | None, option: str = "--out", kind: str = "JSON") -> None:
    """Refuse a folder where a file is to be written."""
    if path is not None and path.is_dir():
        raise UserError(f"{option} {path} is a folder; expected the name of a {kind} file")


def check_folder(path: Path, purpose: str = "") -> None:
    """Refuse a file where a folder is to be written."""
    if path.exists() and not path.is_dir():
        raise UserError(f"--out {path} is a file; expected a folder{purpose}")


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file and print its path."""
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False).encode(errors="backslashreplace") + b"\n")
    say(f"written to {path}")
