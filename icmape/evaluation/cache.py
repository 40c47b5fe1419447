"""Numbers that were computed before, kept with what they depend on: a change of that makes them worthless."""

import dataclasses
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from icmape.evaluation.metrics import Evaluation
from icmape.io import write_atomically

NUMBERS = ("problems", "networks", "learning", "teams", "references", "evaluation")


@cache
def code_digest() -> str:
    """A hash of the code that numbers come from, so that none outlives it."""
    root = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(p for folder in NUMBERS for p in (root / folder).rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:16]


class JsonCache:
    """A JSON file of values by name, each with the key it was computed under."""

    def __init__(self, path: Path):
        self.path = path

    def get(self, name: str, key: str) -> Any:
        """The value, if it is there and was computed under this key by this code."""
        entry = self._read().get(name)
        if not isinstance(entry, dict) or (entry.get("key"), entry.get("code")) != (key, code_digest()):
            return None
        return entry.get("value")

    def put(self, name: str, key: str, value: Any) -> None:
        """Keep a value. A folder that cannot be written to keeps none."""
        entries = self._read() | {name: {"key": key, "code": code_digest(), "value": value}}
        try:
            write_atomically(self.path, json.dumps(entries, indent=2).encode() + b"\n")
        except OSError:
            return

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}


class CachedEvaluations:
    """Evaluations of a run's teams, in its folder; a team file that changed is played again."""

    def __init__(self, folder: Path, episodes: int, seed: int):
        self.file = JsonCache(folder / f"evaluation-{episodes}-{seed}.json")

    def get(self, team: str, digest: str) -> Evaluation | None:
        """The evaluation of the team file with this hash."""
        value = self.file.get(team, digest)
        try:
            return None if value is None else Evaluation(**value)
        except TypeError:  # written with other columns
            return None

    def put(self, team: str, digest: str, result: Evaluation) -> None:
        """Keep it."""
        self.file.put(team, digest, dataclasses.asdict(result))
