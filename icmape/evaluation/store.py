"""Where results are: those that are there already, and a folder for what is done now. One file a result."""

import json
from pathlib import Path
from typing import Any

from icmape.io import circumstances, write_atomically

ANY = "*"  # in the place of a team's hash: the team is not at hand, so nothing can contradict the result


class Store:
    """Results by name. What is written goes to `out`; what is read may also come from `base`."""

    def __init__(self, out: Path, base: Path | None = None):
        self.out, self.base = out, base

    def find(self, name: str) -> Path | None:
        """A file or folder by its name: the new one before the one that was there."""
        folders = [self.out, *([self.base] if self.base else [])]
        return next((folder / name for folder in folders if (folder / name).exists()), None)

    def names(self, pattern: str) -> list[Path]:
        """Files of a pattern; of two with one name, the new one."""
        found: dict[str, Path] = {}
        for folder in filter(None, (self.base, self.out)):
            found |= {path.relative_to(folder).as_posix(): path for path in folder.glob(pattern)}
        return [found[name] for name in sorted(found)]

    def read(self, name: str, asked: dict[str, Any]) -> Any:
        """A result, if it is there and answers just this question."""
        asked = json.loads(json.dumps(asked))  # as a file would say it
        for folder in filter(None, (self.out, self.base)):
            content = read_json(folder / name)
            if isinstance(content, dict) and answers(content.get("asked"), asked):
                return content.get("value")
        return None

    def write(self, name: str, asked: dict[str, Any], value: Any) -> Path:
        """Keep a result with the question that it answers and where it comes from."""
        content = {"asked": asked, "value": value, "provenance": circumstances()}
        path = self.out / name
        write_atomically(path, json.dumps(content, indent=1).encode() + b"\n")
        return path


def answers(found: Any, asked: dict[str, Any]) -> bool:
    """Whether a result's question is the one asked."""
    if not isinstance(found, dict) or set(found) != set(asked):
        return False
    return all(value in (ANY, found[key]) for key, value in asked.items())


def read_json(path: Path) -> Any:
    """A file's content; none if it is not there or not whole."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
