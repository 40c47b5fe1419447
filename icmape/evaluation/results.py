"""Results on disk, each with what it depends on: team, problem with its data, code, seed. Others are made anew.

A `Store` keeps one JSON file a result, `JsonCache` many values in one, and `stored_episodes` played episodes. What
agents saw is not kept: no analysis asks for it.
"""

import dataclasses
import hashlib
import io
import json
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from icmape.compiling import use_compilation_cache
from icmape.evaluation.methods import Tick
from icmape.evaluation.metrics import Evaluation
from icmape.io import circumstances, write_atomically
from icmape.play.episodes import Episodes, Judged, play
from icmape.play.rollout import Episode
from icmape.play.team import Team
from icmape.problem.spec import describe, problem_digest

ANY = "*"  # in the place of a team's hash: the team is not at hand, so nothing can contradict the result
ABOUT = "asked"  # the entry of a file of episodes that says what they are of
NUMBERS = ("problem", "networks", "play", "learning", "baselines", "evaluation", "zoo")


@cache
def code_digest() -> str:
    """A hash of the code that numbers come from, so that none outlives it."""
    root = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(p for folder in NUMBERS for p in (root / folder).rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:16]


class Store:
    """Results by name, a JSON file each. What is written goes to `out`; what is read may also come from `base`."""

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


class JsonCache:
    """A JSON file of values by name, each with the key it was computed under and the code that computed it."""

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
        content = read_json(self.path)
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


def stored_episodes(
    path: Path, team: Team, digest: str, count: int, seed: int, *, exact: int | None = None, tick: Tick | None = None
) -> Episodes:
    """The team's episodes in fresh worlds: from the file if it holds just these, else played and written to it.

    `digest` tells teams apart (a hash of the team's file). Other data, arguments or code give other episodes.
    """
    worlds = {"problem": describe(team.problem, local=False), "data": problem_digest(team.problem), "seed": seed}
    asked = json.dumps({"team": digest, **worlds, "code": code_digest(), "episodes": count, "exact": exact})
    found = load_episodes(path, asked)
    if found is not None:
        if tick:
            tick(count)
        return found
    use_compilation_cache()
    played = play(team, count, seed, tick, exact)
    save_episodes(path, asked, played)
    return played


def save_episodes(path: Path, asked: str, episodes: Episodes) -> None:
    """Write them, atomically; rounds that no episode reached are left out."""
    played = episodes.played
    rounds = int(played.stop.max()) + 1
    columns: dict[str, Any] = {
        ABOUT: np.array(asked),
        "actions": played.actions[:, :rounds],
        "stop": played.stop,
        "hypothesis": played.hypothesis,
        "final": episodes.final,
        **_columns("team", episodes.team, rounds),
    }
    if episodes.exact is not None:
        columns |= _columns("exact", episodes.exact, rounds) | {"distance": episodes.distance[:, :rounds]}
    content = io.BytesIO()
    np.savez_compressed(content, **columns)
    write_atomically(path, content.getvalue())


def _columns(name: str, judged: Judged, rounds: int) -> dict[str, Any]:
    return {f"{name}_{column}": values[:, :rounds] for column, values in judged._asdict().items()}


def load_episodes(path: Path, asked: str) -> Episodes | None:
    """Episodes, if the file is there, whole and of just what was asked for."""
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            if str(file[ABOUT]) != asked:
                return None
            columns = {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    count, rounds = len(columns["stop"]), columns["actions"].shape[1]
    no, yes = np.zeros((count, rounds), bool), np.ones(count, bool)
    played: Any = Episode(columns["actions"], None, no, columns["stop"], columns["hypothesis"], yes)  # type: ignore[arg-type]
    judged = {
        name: Judged(*(columns[f"{name}_{column}"] for column in Judged._fields))
        for name in ("team", "exact")
        if f"{name}_correct" in columns
    }
    return Episodes(played, judged["team"], judged.get("exact"), columns["final"], columns.get("distance"))
