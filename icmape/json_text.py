"""JSON from files that anybody may have written."""

import json
from typing import Any


def parse(text: str | bytes) -> Any:
    """The content of a JSON text; `ValueError` also for names that are there twice, and for very deep nesting."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _without_repeats(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(entries)
    if len(content) < len(entries):
        names = [name for name, _ in entries]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice[:60]!r} is there twice")
    return content
