"""What a device has told nobody yet: entries of its journal that the coordinator has not acknowledged."""

from typing import Any, NamedTuple

from icmape_agent.session import Session
from icmape_agent.session.journal import Entry
from icmape_agent.session.records import AgentRecord

SENT = ("type", "agent", "round", "action", "reading", "id", "note", "time")
AGAIN = ("storage", "early")
"""Kinds of refusals after which the same message may succeed."""


class Refused(NamedTuple):
    """A message that the coordinator did not take."""

    message: dict[str, Any]
    error: dict[str, Any]


class Outbox:
    """Messages by their ids, in the order of rounds. After a restart all entries of the journal are sent once more."""

    def __init__(self, session: Session, agent: int):
        self.session, self.agent = session, agent
        self.waiting: dict[str, dict[str, Any]] = {}
        self.refused: list[Refused] = []
        self._known: set[str] = set()
        self.add()

    def add(self) -> None:
        """Take the entries of the journal that were not taken yet."""
        for message in own_messages(self.session.records.agents[self.agent]):
            if message["id"] not in self._known:
                self._known.add(message["id"])
                self.waiting[message["id"]] = message

    def replied(self, reply: Any) -> None:
        """Take a reply of the coordinator. One that is repeated, or that belongs to no message, changes nothing."""
        number = reply.get("id") if isinstance(reply, dict) else None
        if not isinstance(number, str) or number not in self.waiting:
            return
        error = reply.get("error")
        if reply.get("ok") is not True and isinstance(error, dict) and error.get("kind") in AGAIN:
            return
        message = self.waiting.pop(number)
        if reply.get("ok") is not True:
            self.refused.append(Refused(message, error if isinstance(error, dict) else {}))


def own_messages(record: AgentRecord) -> list[dict[str, Any]]:
    """The entries of an agent as messages: what came before round 0, the rounds, the stop."""
    rounds = sorted({*record.readings, *record.misses})
    entries = [record.first, *(part.get(n) for n in rounds for part in (record.misses, record.readings)), record.stop]
    return [_message(entry) for entry in entries if entry is not None]


def _message(entry: Entry) -> dict[str, Any]:
    message = {name: entry[name] for name in SENT if name in entry}
    return {"id": f"{entry['type']}-{entry.get('round', 'first')}", **message}
