"""Whether what a session recorded looks like the worlds that its team was trained on.

`icmape check-prior TEAM FOLDER --prepare` simulates sessions of a team and writes their statistics to a file. Sessions
in that folder, or in one directly inside it, are ranked among them when the team answers.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icmape_agent.errors import UserError
from icmape_agent.files import MOST_BYTES
from icmape_agent.session.ranks import rank_first, two_sided
from icmape_agent.session.records import Counted
from icmape_agent.session.statistics import CONFIDENCE, SHARE, Sessions, Words, statistics

if TYPE_CHECKING:
    from icmape_agent.session.session import Session

FORMAT = "icmape-prior-2"  # with values that are not rounded
SHOWN = 3  # statistics in a warning


@dataclass(frozen=True)
class Reference:
    """The statistics of simulated sessions of a team, each ended by the team itself."""

    words: Words
    table: np.ndarray  # sessions, statistics
    level: float

    def to_bytes(self) -> bytes:
        """The content of a file."""
        from safetensors.numpy import save

        about = {"format": FORMAT, "words": json.dumps(self.words._asdict()), "level": repr(self.level)}
        return save({"table": self.table.astype(np.float32)}, about)


def name_of(identity: str) -> str:
    """The name of the file for a team."""
    return f"prior-{identity}.safetensors"


def find(session: "Session") -> Path | None:
    """The file for the team of a session, in its folder or in the one above."""
    folder = session.folder.resolve()
    places = (place / name_of(session.crew.identity) for place in (folder, folder.parent))
    return next((path for path in places if path.is_file()), None)


def read(path: Path) -> Reference:
    """Read a file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError("it is too large")
        data = path.read_bytes()
        about = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        words, table = json.loads(about["words"]), load(data)["table"].astype(np.float64)
        actions, parts = [str(name) for name in words["actions"]], [(str(a), str(b)) for a, b in words["parts"]]
        if about["format"] != FORMAT or table.ndim != 2:
            raise ValueError("it has another format")
        return Reference(Words(str(words["agent"]), actions, parts, bool(words["fails"])), table, float(about["level"]))
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise UserError(f"{path} holds no simulated sessions: {error}; write it again") from error


def warning(session: "Session", data: Counted, confidence: float) -> str:
    """A sentence, if a session that an agent ended is unlike those of the file for its team; else nothing.

    `confidence` is that of its answer. A file that cannot be used does not keep the team from answering.
    """
    try:
        return _warning(session, data, confidence)
    except UserError as error:
        return f"it is not known whether this session looks like the worlds that the team was trained on: {error}"


def _warning(session: "Session", data: Counted, confidence: float) -> str:
    path = find(session)
    by_agent = any(stop["round"] == session.records.stop_round for stop in session.records.stops if _agent(stop))
    if path is None or not by_agent or session.crew.gate.inner or not session.records.stop_round:
        return ""
    reference = read(path)
    recorded = _sessions(session, data, confidence)
    rows = statistics(recorded, reference.words)
    own = np.array([[float(np.float32(row.values[0])) for row in rows]])
    if reference.table.shape[1] != own.shape[1]:
        raise UserError(f"{path} has other statistics than this version: write it again")
    known = _known(session, recorded, reference.words, [row.name for row in rows])
    rows, table = [rows[number] for number in known], np.concatenate([own, reference.table])[:, known]
    ranked = rank_first(table)
    if ranked.p_value >= reference.level:
        return ""
    order = np.argsort(-ranked.surprise, kind="stable")[:SHOWN]
    odd = [_odd(rows[number].name, table[:, number]) for number in order]
    return (
        f"this session does not look like the worlds that the team was trained on (p = {ranked.p_value:.2g}): "
        f"{'; '.join(odd)}. The confidence may be wrong. One good session in {round(1 / reference.level):,} warns: "
        "check all of them with `icmape check-prior`"
    )


def _known(session: "Session", recorded: Sessions, words: Words, names: Sequence[str]) -> list[int]:
    """The statistics that are compared: the file knows nothing of answers and actions from which something is missing.

    Where readings get lost in the worlds of the problem, only rounds that the answer leaves out are missing.
    """
    counted = session.counted()
    every = len(counted.rounds) + len(counted.partial) == session.records.stop_round
    answered = every and (words.fails or bool(recorded.arrived.all()))
    acted = every and (words.fails or bool(recorded.acted.all()))
    return [
        number
        for number, name in enumerate(names)
        if (answered or name != CONFIDENCE) and (acted or not name.startswith(SHARE))
    ]


def _agent(stop: dict[str, Any]) -> bool:
    return stop["agent"] is not None


def _odd(name: str, column: np.ndarray) -> str:
    known = column[1:][np.isfinite(column[1:])]
    low, high = np.quantile(known, [0.025, 0.975])
    return f"{name} {column[0]:.3g}, usually {low:.3g} to {high:.3g} (p = {two_sided(column):.2g})"


def _sessions(session: "Session", data: Counted, confidence: float) -> Sessions:
    """The data of one session as those of many."""
    gate, end = session.crew.gate, session.records.stop_round
    actions, acted = gate.some_joint_actions(data.actions)
    readings, arrived = gate.some_joint_readings(end, data.readings)
    parts: Sequence[np.ndarray] = gate.flat(readings)
    flat = [np.asarray(part, np.float32).reshape(1, *part.shape[:2], -1) for part in parts]
    return Sessions(actions[None], flat, acted[None], arrived[None], np.array([end]), np.array([confidence]))
