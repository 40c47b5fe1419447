"""Recorded sessions as data for statistics, and what in them the team did not choose itself."""

import os
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from icmape.errors import UserError
from icmape.play.missing import marks_of
from icmape.play.readings import Gate
from icmape.play.sessions import session as session_of
from icmape.play.team import STOP, Agent, Team
from icmape.problem import Centralized, Problem
from icmape_agent.session import Session
from icmape_agent.session.crew import Crew, see
from icmape_agent.session.records import AgentRecord
from icmape_agent.session.statistics import Sessions


@dataclass(frozen=True)
class Recorded:
    """One session: its data with one row, and how it came about."""

    folder: str
    sessions: Sessions  # one row, of as many rounds as the longest session may have; without rounds that do not count
    counts: Bool[np.ndarray, "rounds"]  # whether the answer reads a round before the stop
    joint: Int[np.ndarray, "rounds agents"]  # actions as the team's policy chooses them
    overruled: int
    """Actions that differ from what the team would have chosen after the same readings."""
    ended: bool
    """Whether the team ended it; otherwise a person did, or it is not over."""

    @property
    def rounds(self) -> int:
        """Number of rounds before the stop, or so far."""
        return int(self.sessions.rounds[0])

    @property
    def missing(self) -> int:
        """Number of readings that did not arrive, of rounds that count."""
        return int((~self.sessions.arrived[0, : self.rounds][self.counts]).sum())

    @property
    def left_out(self) -> int:
        """Number of rounds before the stop that the answer does not read."""
        return int((~self.counts).sum())

    @property
    def about(self) -> dict[str, Any]:
        """JSON values."""
        state = {"ended": self.ended, "overruled": self.overruled, "missing": self.missing}
        return {"folder": self.folder, "rounds": self.rounds, "left_out": self.left_out, **state}


def read_sessions(team: Team, folders: list[str]) -> list[Recorded]:
    """The sessions of a team in these folders and in those below them, each with at least one reading."""
    paths = [path for folder in folders for path in _session_folders(folder)]
    read, empty = [], []
    for path in dict.fromkeys(paths):
        with session_of(team, path, write=False) as opened:
            read.append(recorded(team, opened, path))
            if not any(reading is not None for row in opened.data().readings[: read[-1].rounds] for reading in row):
                empty.append(path)
    if empty:
        raise UserError(f"{', '.join(empty)}: no reading is recorded there: leave it out")
    return read


def _session_folders(folder: str) -> list[str]:
    below = sorted(place for place, _, names in os.walk(folder) if "journal.jsonl" in names)
    if not below:
        raise UserError(f"{folder} holds no session (journal.jsonl): give folders of sessions (`icmape session`)")
    return below


def recorded(team: Team, session: Session, folder: str) -> Recorded:
    """The data that the answer reads, up to the stop or to the last round that every agent has begun."""
    data, problem, records = session.data(), team.problem, session.records
    end = records.stop_round if records.stopped else min(agent.open_round for agent in records.agents)
    joint, acted = Gate(problem).some_joint_actions(data.actions[:end])
    readings, arrived = Gate(problem).some_joint_readings(end, data.readings[:end])
    marks, counted = marks_of(acted, arrived), session.counted()
    counts = np.isin(np.arange(end), (*counted.rounds, *counted.partial))
    sessions = Sessions(
        _padded(agent_actions(problem, joint), problem.horizon),
        [_padded(part, problem.horizon) for part in agent_parts(problem, readings)],
        _padded(inner_rows(problem, marks.acted) & counts[:, None], problem.horizon),
        _padded(inner_rows(problem, marks.arrived) & counts[:, None], problem.horizon),
        np.array([end]),
        np.array([_confidence(session, end)]),
    )
    overruled, ended = _compared(session.crew, session, end)
    return Recorded(folder, sessions, counts, joint, overruled, ended)


def _confidence(session: Session, end: int) -> float:
    """The team's confidence from the rounds before the end that it reads."""
    data = session.counted()
    rounds = sum(number < end for number in (*data.rounds, *data.partial))
    team, firsts = session.crew.team, session.records.firsts
    return float(team.posterior(data.actions[:rounds], data.readings[:rounds], firsts).confidence)


def _padded(rows: np.ndarray, horizon: int) -> np.ndarray:
    """One session, with rows of zeros up to the last round that has readings."""
    out = np.zeros((1, horizon - 1, *rows.shape[1:]), rows.dtype)
    out[0, : len(rows)] = rows
    return out


def _compared(crew: Crew, session: Session, end: int) -> tuple[int, bool]:
    """The number of actions before the end that an agent would not have chosen, and whether some agent stops there."""
    overruled, stops = 0, end >= session.records.horizon - 1
    for number, record in enumerate(session.records.agents):
        first = None if record.first is None else record.first["reading"]
        agent = crew.team.agent(number, first)
        overruled += _followed(crew, agent, record, end)
        own_end = record.stop is not None and record.stop["round"] == end and agent.round < end
        stops = stops or own_end or (agent.round == end and agent.choice() == STOP)
    return overruled, stops


def _followed(crew: Crew, agent: Agent, record: AgentRecord, end: int) -> int:
    """Play an agent along its record; the number of actions that it would not have chosen."""
    overruled = 0
    for entry in record.history[:end]:
        overruled += "action" in entry and agent.choice() != entry["action"]
        see(agent, entry, crew.takes_missing)
    return overruled


# -- the layout of the agents of the problem inside, for problems with one centralized agent


def agent_actions(problem: Problem, joint: Int[np.ndarray, "*batch agents"]) -> Int[np.ndarray, "*batch inner"]:
    """Actions of the agents that read something."""
    return problem.agent_actions(joint)


def agent_parts(problem: Problem, readings: Any) -> list[Float[np.ndarray, "rounds inner elements"]]:
    """The parts of readings (leading axes: rounds, agents), each with one axis of elements."""
    parts = [np.asarray(inner_rows(problem, np.asarray(part))) for part in jax.tree.leaves(readings)]
    return [part.reshape(*part.shape[:2], -1).astype(np.float32) for part in parts]


def inner_rows(problem: Problem, rows: np.ndarray) -> np.ndarray:
    """Rows (leading axes: rounds, agents) of the agents that read something."""
    return rows[:, 0] if isinstance(problem, Centralized) else rows
