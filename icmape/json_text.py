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
    content: dict[str, Any] = {}
    for name, value in entries:
        if name in content:
            raise ValueError(f"the name {name[:60]!r} is there twice")
        content[name] = value
    return content
