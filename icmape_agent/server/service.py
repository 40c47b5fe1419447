"""What pages show: to an agent its own entries and the stop bit, to the coordinator everything."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from icmape_agent.answers import RANKED
from icmape_agent.errors import UserError
from icmape_agent.files import read
from icmape_agent.geography import map_of
from icmape_agent.javascript import exported_agent
from icmape_agent.server.links import COORDINATOR, Links
from icmape_agent.session import Session
from icmape_agent.session import journal as journals
from icmape_agent.team import Team

RANKS = 5  # answers that are listed
OWN = ("type", "agent", "round", "action", "reading", "id", "late", "note", "time")
"""What an agent is shown of its own entries."""


class Service:
    """A session and its team, as pages see them."""

    def __init__(self, session: Session, team: Team, source: str | Path, links: Links, base: str, hold: float):
        self.session, self.team, self.links = session, team, links
        self.base = base
        """The address before each link's path."""
        self.hold = hold
        """Seconds for which an agent's page keeps a reading before it sends it."""
        file = read(source)
        team._functions("open", "move")
        display = team.described.display
        self.layout: Any = file.described["layout"]
        self.map = map_of(display["actions"])
        self.program = exported_agent({**file.described, "display": display}, file.tensors, file.delta)
        self._seen: dict[int, str] = {}

    # -- agents: whatever is here rests on the agent's own entries and the stop bit

    def about_agent(self, agent: int) -> dict[str, Any]:
        """What a page needs before it can act."""
        return {"session": self.session.header["session"], "agent": agent, "hold": self.hold, "map": self.map}

    def agent_state(self, agent: int) -> dict[str, Any]:
        """The stop bit, and what the journal holds of this agent."""
        entries = self.session.entries(agent)
        own = [{name: entry[name] for name in OWN if name in entry} for entry in entries]
        return {"ok": True, "session": self.session.header["session"], "stopped": self.session.stopped, "entries": own}

    # -- the coordinator

    def about(self) -> dict[str, Any]:
        """Sizes, names and what people see of actions and readings."""
        described = self.team.described
        return {
            "problem": self.team.gate.title,
            "sizes": self.team.gate.sizes._asdict(),
            "delta": self.team.delta,
            "actions": [self.team.action_name(n) for n in range(self.team.gate.sizes.actions)],
            "display": described.display,
            "layout": self.layout,
            "map": self.map,
            "header": {name: self.session.header[name] for name in ("session", "created", "note", "source")},
            "links": [self.link(agent) for agent in range(len(self.links.agents))],
        }

    def state(self) -> dict[str, Any]:
        """Everything in the journal, and when each agent was last heard of."""
        session, records = self.session, self.session.records
        entries = session.entries()
        written = {entry["agent"]: entry["at"] for entry in entries}  # the last one of each agent
        agents = [
            {
                "round": record.open_round,
                "readings": len(record.readings),
                "missed": len(set(record.misses) - set(record.readings)),
                "waiting": record.waiting,
                "written": written.get(number),
                "seen": self._seen.get(number),
            }
            for number, record in enumerate(records.agents)
        ]
        stops = [{"agent": stop["agent"], "round": stop["round"]} for stop in records.stops]
        stop_round = records.stop_round if records.stopped else None
        common = {"ok": True, "now": now(), "stopped": session.stopped, "stop_round": stop_round, "stops": stops}
        return {**common, **self._counting(), "agents": agents, "entries": entries}

    def _counting(self) -> dict[str, Any]:
        """Rounds that count, or would if somebody stopped now: whole ones, and those with readings missing."""
        try:
            data = self.session.counted()
        except UserError:  # an agent's observation before round 0 is not there: there is no answer without it
            return {"whole": [], "partial": []}
        return {"whole": data.rounds, "partial": data.partial}

    def answer(self, early: bool) -> dict[str, Any]:
        """The team's answer, with the most probable ones; a reply of the session if there is none."""
        reply = self.session.handle({"type": "answer", "early": early})
        if not reply["ok"]:
            return reply
        answer, kind = self.session.answer(early=early), self.team.answers.kind
        if kind not in RANKED:
            return {**reply, "ranks": [], "places": None}
        ranked, adds = RANKED[kind](answer.scores) if kind != "factored" else _factored(answer.scores)
        chances = answer.probabilities.reshape(-1)[ranked] if kind == "topk" else adds
        few, near = range(min(RANKS, len(ranked))), self.session.crew.near
        ranks = [[self.team.answers.name(ranked[n]), float(chances[n]), near(ranked[n])] for n in few]
        at_places = bool(self.team.described.display["answers"])
        return {**reply, "ranks": ranks, "places": answer.probabilities.reshape(-1).tolist() if at_places else None}

    def journal(self) -> bytes:
        """The file as it is."""
        return (self.session.folder / journals.NAME).read_bytes()

    # -- both

    def link(self, holder: int) -> str:
        """The whole address of a page, as others reach it."""
        return self.base + self.links.path(holder)

    def heard(self, holder: int) -> None:
        """A request with the link of this agent came."""
        if holder != COORDINATOR:
            self._seen[holder] = now()


def _factored(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whole answers in order, or none if they are too many to be listed."""
    try:
        return RANKED["factored"](scores)
    except UserError:
        return np.zeros((0, len(scores)), int), np.zeros(0)


def now() -> str:
    """The time, for people."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def as_json(value: Any) -> bytes:
    """A reply's text."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode()
