"""What commands print with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

out = Console()


def say(text: str) -> None:
    """A line as it is: neither wrapped nor coloured."""
    out.print(text, soft_wrap=True, highlight=False, markup=False)


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """A bar on a terminal, told how much was done; elsewhere nothing."""
    if not out.is_terminal or total == 0:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=out, transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda count: bar.advance(task, count)
