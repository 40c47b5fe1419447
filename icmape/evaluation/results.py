"""Results on disk, each with a key of team, problem with its data, code and seed. Other keys are recomputed.

A `Store` has one JSON file per result, a `JsonCache` many values in one file, and `stored_episodes` caches episodes,
without observations, which no analysis needs.
"""

import hashlib
import io
import json
import struct
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.evaluation.methods import Tick
from icmape.evaluation.metrics import Evaluation
from icmape.evaluation.stop_curves import StopCurve
from icmape.io import circumstances, read_bounded, write_atomically
from icmape.json_text import parse
from icmape.play.episodes import Episodes, Judged, play
from icmape.play.rollout import Episode
from icmape.play.team import Team
from icmape.problem.spec import describe, problem_digest

ANY = "*"  # instead of the hash of a team that is not available: matches any team
SEAL = "sha256"  # of a value, or of all arrays of a file
ABOUT = "asked"  # the entry of a file of episodes with their key
NUMBERS = ("problem", "networks", "play", "learning", "baselines", "evaluation", "zoo")


@cache
def code_digest() -> str:
    """A hash of the code that results depend on."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(p for folder in NUMBERS for p in (root / folder).rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class Store:
    """Results by name, one JSON file each, written to `out` and read from `out` or `base`."""

    def __init__(self, out: Path, base: Path | None = None):
        self.out, self.base = out, base

    def find(self, name: str) -> Path | None:
        """A file or folder by its name, in `out` or else in `base`."""
        folders = [self.out, *([self.base] if self.base else [])]
        return next((folder / name for folder in folders if (folder / name).exists()), None)

    def names(self, pattern: str) -> list[Path]:
        """Files that match a pattern; those in `out` take precedence."""
        paths: dict[str, Path] = {}
        for folder in filter(None, (self.base, self.out)):
            paths |= {path.relative_to(folder).as_posix(): path for path in folder.glob(pattern)}
        return [paths[name] for name in sorted(paths)]

    def read(self, name: str, key: dict[str, Any]) -> Any:
        """A result, if it is stored with this key."""
        key = json.loads(json.dumps(key))  # as in a file
        for folder in filter(None, (self.out, self.base)):
            content = read_json(folder / name)
            if isinstance(content, dict) and answers(content.get("asked"), key) and is_whole(content):
                return content.get("value")
        return None

    def write(self, name: str, key: dict[str, Any], value: Any) -> Path:
        """Write a result with its key and its provenance."""
        content = {"asked": key, "value": value, SEAL: value_digest(value), "provenance": circumstances()}
        path = self.out / name
        write_atomically(path, json.dumps(content, indent=1).encode() + b"\n")
        return path


def answers(stored: Any, key: dict[str, Any]) -> bool:
    """Whether a stored key matches the requested one."""
    if not isinstance(stored, dict) or set(stored) != set(key):
        return False
    return all(value in (ANY, stored[name]) for name, value in key.items())


def read_json(path: Path) -> Any:
    """The content of a file; None if it is missing or incomplete."""
    try:
        return parse(read_bounded(path))
    except (OSError, ValueError, UserError):
        return None


def value_digest(value: Any) -> str:
    """A hash of a value as JSON."""
    return hashlib.sha256(json.dumps(json.loads(json.dumps(value)), sort_keys=True).encode()).hexdigest()


def is_whole(entry: dict[str, Any]) -> bool:
    """Whether a value has the hash that was stored with it; entries of icmape 0.11 and older have none."""
    return SEAL not in entry or entry[SEAL] == value_digest(entry.get("value"))


class JsonCache:
    """A JSON file of values by name, each with its key and the hash of the code."""

    def __init__(self, path: Path):
        self.path = path

    def get(self, name: str, key: str) -> Any:
        """The value, if it is stored with this key and the current code."""
        entry = self._read().get(name)
        if not isinstance(entry, dict) or (entry.get("key"), entry.get("code")) != (key, code_digest()):
            return None
        if not is_whole(entry):
            return None
        return entry.get("value")

    def put(self, name: str, key: str, value: Any) -> None:
        """Store a value; errors of writing are ignored."""
        entry = {"key": key, "code": code_digest(), "value": value, SEAL: value_digest(value)}
        entries = self._read() | {name: entry}
        try:
            write_atomically(self.path, json.dumps(entries, indent=2).encode() + b"\n")
        except OSError:
            return

    def _read(self) -> dict[str, Any]:
        content = read_json(self.path)
        return content if isinstance(content, dict) else {}


class CachedEvaluations:
    """Cached evaluations and curves of the teams of a run, in its folder, by the hash of the team file."""

    def __init__(self, folder: Path, episodes: int, seed: int):
        self.file = JsonCache(folder / f"evaluation-{episodes}-{seed}.json")

    def get(self, team: str, digest: str) -> tuple[Evaluation | None, StopCurve | None]:
        """Evaluation and curve of the team file with this hash."""
        value = self.file.get(team, digest)
        try:
            curve = value["stop_curve"] and StopCurve.from_dict(value["stop_curve"])
            return Evaluation(**value["evaluation"]), curve
        except (TypeError, KeyError):  # missing, or of another version
            return None, None

    def put(self, team: str, digest: str, result: Evaluation, curve: StopCurve | None) -> None:
        """Store an evaluation and a curve, if the team has one."""
        stored = None if curve is None else curve.to_dict()
        self.file.put(team, digest, {"evaluation": result.to_dict(), "stop_curve": stored})


def stored_episodes(
    path: Path, team: Team, digest: str, count: int, seed: int, *, exact: int | None = None, tick: Tick | None = None
) -> Episodes:
    """The episodes of a team in fresh worlds: from the file if its key matches, else played and written to it.

    `digest` identifies the team (a hash of its file).
    """
    worlds = {"problem": describe(team.problem, local=False), "data": problem_digest(team.problem), "seed": seed}
    key = json.dumps({"team": digest, **worlds, "code": code_digest(), "episodes": count, "exact": exact})
    stored = load_episodes(path, key)
    if stored is not None:
        if tick:
            tick(count)
        return stored
    use_compilation_cache()
    played = play(team, count, seed, tick, exact)
    save_episodes(path, key, played)
    return played


def save_episodes(path: Path, key: str, episodes: Episodes) -> None:
    """Write episodes atomically, without rounds that no episode reached."""
    played = episodes.played
    rounds = int(played.stop.max()) + 1
    columns: dict[str, Any] = {
        ABOUT: np.array(key),
        "actions": played.actions[:, :rounds],
        "stop": played.stop,
        "hypothesis": played.hypothesis,
        "final": episodes.final,
        **_columns("team", episodes.team, rounds),
    }
    if episodes.exact is not None:
        columns |= _columns("exact", episodes.exact, rounds) | {"distance": episodes.distance[:, :rounds]}
    columns[SEAL] = np.array(arrays_digest(columns))
    content = io.BytesIO()
    np.savez_compressed(content, **columns)
    write_atomically(path, content.getvalue())


def _columns(name: str, judged: Judged, rounds: int) -> dict[str, Any]:
    return {f"{name}_{column}": values[:, :rounds] for column, values in judged._asdict().items()}


def arrays_digest(columns: dict[str, Any]) -> str:
    """A hash of arrays with their names, types and shapes."""
    digest = hashlib.sha256()
    for name, column in sorted(columns.items()):
        array = np.asarray(column)
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()


def load_episodes(path: Path, key: str) -> Episodes | None:
    """Episodes, if the file is complete and its key matches."""
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            if str(file[ABOUT]) != key:
                return None
            columns = {name: file[name] for name in file.files}
            return _episodes(columns) if str(columns.pop(SEAL)) == arrays_digest(columns) else None
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, MemoryError, OverflowError, SyntaxError):
        # whatever is damaged; NumPy parses the headers of arrays as Python
        return None
    except (struct.error, zipfile.BadZipFile, zlib.error):
        return None


def _episodes(columns: dict[str, Any]) -> Episodes:
    count, rounds = len(columns["stop"]), columns["actions"].shape[1]
    no, yes = np.zeros((count, rounds), bool), np.ones(count, bool)
    played: Any = Episode(columns["actions"], None, no, columns["stop"], columns["hypothesis"], yes)  # type: ignore[arg-type]
    judged = {
        name: Judged(*(columns[f"{name}_{column}"] for column in Judged._fields))
        for name in ("team", "exact")
        if f"{name}_correct" in columns
    }
    return Episodes(played, judged["team"], judged.get("exact"), columns["final"], columns.get("distance"))
