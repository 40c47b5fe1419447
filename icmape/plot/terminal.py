"""Output of commands, and checks of output paths."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from icmape.errors import UserError
from icmape.io import write_atomically

out = Console()


def say(text: str) -> None:
    """Print a text without wrapping and colours."""
    out.print(text, soft_wrap=True, highlight=False, markup=False)


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
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")
    say(f"written to {path}")
