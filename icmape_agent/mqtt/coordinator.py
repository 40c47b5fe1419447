"""The coordinator: it puts what agents tell into a session, acknowledges it, and keeps the public bit set.

It tells an agent nothing but whether its own messages are recorded. Who sent a message is known from the topic, to
which the broker lets only this agent write.
"""

import json
import logging
import time
from typing import Any

from icmape_agent.mqtt.bit import StopBit
from icmape_agent.mqtt.broker import Broker, Link
from icmape_agent.mqtt.messages import unpack
from icmape_agent.mqtt.topics import Topics
from icmape_agent.session import Session

WAIT = 60.0  # seconds without a message after which a coordinator no longer waits for readings before the stop
QUIET = 3.0  # seconds without a message after which it leaves, so that acknowledgements that were lost are sent again
STEP = 0.05
log = logging.getLogger("icmape")


class Coordinator:
    """A session at a broker. The session must be open for writing."""

    def __init__(self, session: Session, *, broker: Broker, name: str):
        self.session, self.topics = session, Topics.of(name)
        self.bit = StopBit(session.crew.gate.sizes.horizon)
        """What was heard of the public bit."""
        topics = [self.topics.told(), self.topics.stop]
        self.link = Link(broker, f"{name}-coordinator", topics, self._received, self._connected)
        self._last = time.monotonic()

    def open(self) -> None:
        """Begin to serve, in a thread of its own."""
        self.link.open()

    def close(self) -> None:
        """End the connection."""
        self.link.close()

    def run(self, wait: float = WAIT, quiet: float = QUIET) -> None:
        """Serve until the team stopped and all readings before the stop are there, or none came for `wait` seconds."""
        self.open()
        try:
            while not self._is_done(wait, quiet):
                self.link.check()
                time.sleep(STEP)
        finally:
            self.close()

    @property
    def is_complete(self) -> bool:
        """Whether the team stopped and every agent told its rounds up to the stop, and what it observed before."""
        records, shows_first = self.session.records, self.session.crew.gate.shows_first
        begun = all(agent.first is not None or not shows_first for agent in records.agents)
        return records.stopped and begun and all(agent.open_round >= records.stop_round for agent in records.agents)

    def _is_done(self, wait: float, quiet: float) -> bool:
        silence = time.monotonic() - self._last
        if self.bit.is_set and not self.session.stopped and silence >= wait:
            note = "the stop bit was set, and the agent that set it was not heard again"
            self.session.stop(round=self.bit.round, note=note)
            self._announce()
        return self.session.stopped and silence >= (quiet if self.is_complete else max(wait, quiet))

    def _connected(self) -> None:
        """Set the bit again: a broker that was started anew may have forgotten it."""
        if self.session.stopped or self.bit.is_set:
            self._announce()

    def _announce(self) -> None:
        if self.session.stopped:
            self.bit.hear(self.session.records.stop_round)
        self.link.publish(self.topics.stop, self.bit.payload, retain=True)

    def _received(self, topic: str, payload: bytes) -> None:
        self._last = time.monotonic()
        if topic == self.topics.stop:
            if self.bit.heard(payload):
                self.link.publish(topic, self.bit.payload, retain=True)
            return
        agent = self.topics.sender(topic)
        if agent is None or agent >= self.session.crew.gate.sizes.agents:
            log.warning("a message on %r: there is no such agent", topic[:100])
            return
        reply = self._reply(agent, payload)
        if not reply["ok"]:
            log.warning("agent %d: %s", agent, reply["error"]["text"])
        self.link.publish(self.topics.reply(agent), json.dumps(reply, allow_nan=False).encode())
        if self.session.stopped and self.session.records.stop_round < self.bit.round:
            self._announce()

    def _reply(self, agent: int, payload: bytes) -> dict[str, Any]:
        """The reply to a message, whatever it says."""
        try:
            team, message = unpack(payload)
        except ValueError as error:
            return {"ok": False, "error": {"kind": "malformed", "text": str(error)}}
        if team != self.session.crew.identity:
            text = "this session is of another team: give all devices and the coordinator the same team file"
            number = message.get("id") if isinstance(message, dict) else None
            reply = {"ok": False, "error": {"kind": "conflict", "text": text}}
            return {**reply, "id": number} if isinstance(number, str) and len(number) <= 200 else reply
        return self.session.handle(message, sender=agent)
