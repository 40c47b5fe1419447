"""Episodes on disk, so that none is simulated twice. What agents saw is not kept: no analysis asks for it."""

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from icmape.compiling import use_compilation_cache
from icmape.evaluation.methods import Tick
from icmape.io import write_atomically
from icmape.play.episodes import Episodes, Judged, play
from icmape.play.rollout import Episode
from icmape.play.team import Team
from icmape.problem.spec import describe

ABOUT = "asked"  # the entry that says what the episodes are of
VERSION = 1  # of what is stored


def stored_episodes(
    path: Path, team: Team, digest: str, count: int, seed: int, *, exact: int | None = None, tick: Tick | None = None
) -> Episodes:
    """The team's episodes in fresh worlds: from the file if it holds just these, else played and written to it.

    `digest` tells teams apart (a hash of the team's file).
    """
    asked = json.dumps([VERSION, digest, describe(team.problem, local=False), count, seed, exact], sort_keys=True)
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
