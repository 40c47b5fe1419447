"""A device: one agent of a team at work, alone, with a broker between it and the coordinator.

It acts on its own readings and keeps them in a journal of its own, on the disk before anything is sent. It reads two
topics: the public stop bit, and the coordinator's replies to its own messages.
"""

import logging
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icmape_agent.errors import UserError
from icmape_agent.mqtt.bit import STEP, StopBit
from icmape_agent.mqtt.broker import Broker, Link
from icmape_agent.mqtt.clock import Clock
from icmape_agent.mqtt.messages import pack, reply_of
from icmape_agent.mqtt.outbox import Outbox, Refused
from icmape_agent.mqtt.readers import Called, Reader, Request
from icmape_agent.mqtt.topics import NAMES, Topics
from icmape_agent.team import Team

AGAIN = 2.0  # seconds after which messages without a reply are sent again
RENEW, RARELY = 5, 300.0  # repeats without any reply after which the connection is made anew; seconds at most
PATIENCE = 60.0  # seconds after the stop in which a device tries to hand in what was not acknowledged
JOIN = 2.0  # seconds for which a device without a clock waits for the broker before it acts
RETAINED = 0.3  # seconds after joining within which the broker sends the retained bit, if there is one
MISSES, FAILURES = 2, 8
"""Without a clock: of readings in a row that do not come, how many are missed rounds, and with how many it ends."""
PAUSE = 1.0  # seconds after the second of them; twice as long after every other
OWNER = re.compile(rf"agent [0-9]+ of {NAMES.pattern}")
"""The note in the header of a device's journal."""
log = logging.getLogger("icmape")


@dataclass(frozen=True)
class Ended:
    """How an episode ended for a device."""

    round: int  # its open round
    decided: bool  # whether this agent stopped the team
    waiting: int  # entries that nobody acknowledged; they are in the journal, and a later start sends them
    refused: tuple[Refused, ...]  # what the coordinator did not take


class Device:
    """One agent of a team, its journal, and its connection. `run` plays until the team stops.

    `read` takes the readings: a function of the action (None before round 0), or a `Reader`. Without a clock an agent
    acts as soon as it has a reading, and `UserError` ends it when too many in a row do not come. On a clock, rounds
    whose time passed without a reading count as missed. An agent plays the rounds before the stop, also if it is
    behind, and no later ones once it heard of the stop.
    """

    def __init__(
        self,
        team: Team,
        index: int,
        read: Reader | Callable[[int | None], Any],
        *,
        broker: Broker,
        session: str,
        folder: str | os.PathLike[str],
        clock: Clock | None = None,
        again: float = AGAIN,
        patience: float = PATIENCE,
    ):
        self.team, self.number, self.clock = team, team.gate.agent(index), clock
        self.reader = read if isinstance(read, Reader) else Called(read)
        self.topics, self.folder, self.again, self.patience = Topics.of(session), Path(folder), again, patience
        if clock is not None and not team.takes_missing:
            raise UserError("on a clock readings may be missed, and this team takes no missing readings: leave it out")
        self.bit = StopBit(team.gate.sizes.horizon)
        self._replies = threading.Lock()
        own = [self.topics.stop, self.topics.reply(self.number)]
        self.link = Link(broker, f"{session}-{self.number}", own, self._received, self._connected)
        self._failures = 0
        self._sent_at, self._sent = 0.0, set[str]()
        self._replied_at, self._renew_after = time.monotonic(), RENEW * again

    def run(self) -> Ended:
        """Act until the team stops, then hand in what was not acknowledged."""
        own = f"agent {self.number} of {self.topics.session}"
        with self.team.session(self.folder, note=own) as session:
            _check_owner(self.folder, session.header.get("note", ""), own)
            self.session, self.outbox = session, Outbox(session, self.number)
            self.link.open()
            try:
                self._join()
                self._play()
                self._hand_in()
            finally:
                self.link.close()
            self.reader.end(self._stop_reply())
            record = session.records.agents[self.number]
            waiting = len(self.outbox.waiting)
            return Ended(record.open_round, record.stop is not None, waiting, tuple(self.outbox.refused))

    # -- acting

    def _join(self) -> None:
        """Wait for the retained bit: an agent that joins late hears of a stop before it decides.

        On a clock it waits only if rounds have passed, and no longer than it listens in a round.
        """
        if self.session.stopped or (self.clock is not None and self.clock.now() <= self._open_round):
            return
        limit = JOIN if self.clock is None else self.clock.listen
        until = time.monotonic() + limit
        if self.link.joined.wait(limit):
            until = time.monotonic() + RETAINED if self.clock is None else until
            while not self.bit.is_set and time.monotonic() < until:
                time.sleep(STEP)

    def _play(self) -> None:
        self._see_first()
        while not self._is_over():
            number = self._next_round()
            if number is None:
                continue
            asked = self._asked()
            if asked["stop"]:
                self._announce()
                return
            if self.clock is not None and self._listens(number):
                continue
            request = Request(self.number, number, asked["action"], asked["name"], self._is_reached)
            self._record(number, asked["action"], self._reading(request))

    def _see_first(self) -> None:
        """The observation before round 0, where the problem has one."""
        record = self.session.records.agents[self.number]
        while self.team.gate.shows_first and record.first is None and not self._is_over():
            reading = self.reader.read(Request(self.number, 0, None, "first", self._is_reached))
            if reading is not None:
                self._kept({"type": "first", "reading": reading})
            elif not self._is_reached():
                self._failed(0, self.reader.told)
                self._waited(PAUSE)
                self._pause()

    def _next_round(self) -> int | None:
        """The round to act in, once it is on; None if the wait ended otherwise. Rounds that passed are missed."""
        number = self._open_round
        if self.clock is None:
            return number
        last = self.team.gate.sizes.horizon - 1
        while number < min(self.clock.now(), last, self.bit.round):
            self._kept({"type": "missed", "round": number, "note": "the round was over"})
            number = self._open_round
        return number if self._waited(self.clock.begins_in(number)) else None

    def _listens(self, number: int) -> bool:
        """Wait before an action for the stop bit of others; whether it came, or the round was over before."""
        assert self.clock is not None
        self.link.look_again(self.topics.stop)
        return not self._waited(self.clock.listen) or self.clock.now() > number

    def _reading(self, request: Request) -> Any:
        """The reading of an action; meanwhile another thread keeps up what must go on."""
        done = threading.Event()
        keeper = threading.Thread(target=self._tend_until, args=(done,), daemon=True)
        keeper.start()
        try:
            return self.reader.read(request)
        finally:
            done.set()
            keeper.join()

    def _record(self, number: int, action: int, reading: Any) -> None:
        """A reading, or that it does not come, to the journal. What is no reading of this problem is a miss too."""
        about, why = {"round": number, "action": action}, self.reader.told
        if reading is not None:
            if self._kept({"type": "tell", **about, "reading": _plain(reading)}, refuse=False):
                self._failures = 0
                return
            why = "what came is no reading of this problem"
        elif self._is_reached():
            return
        self._failed(number, why)
        if self._failures <= MISSES:
            self._kept({"type": "missed", **about})
        self._pause()

    def _failed(self, number: int, why: str) -> None:
        """Say why no reading came. Without a clock, a broken sensor ends the device and not the episode."""
        if not why:  # that it does not come was said by whoever gives the readings
            self._failures = 0
            return
        log.warning("agent %d, round %d: no reading: %s", self.number, number, why)
        self._failures += self.clock is None
        if self._failures >= FAILURES:
            raise UserError(
                f"agent {self.number}: {FAILURES} readings in a row did not come ({why}): mend the sensor, and start "
                f"the device again with the same folder: it goes on in round {number}"
            )

    def _pause(self) -> None:
        """Wait between readings that do not come, longer each time."""
        if self._failures > 1:
            self._waited(PAUSE * 2 ** (self._failures - 2))

    def _kept(self, message: dict[str, Any], refuse: bool = True) -> bool:
        """Write an entry of this agent to the journal, and only then send it."""
        number = f"{message['type']}-{message.get('round', 'first')}"
        reply = self.session.handle({"agent": self.number, "id": number, **message})
        if not reply["ok"]:
            if refuse or reply["error"]["kind"] == "storage":
                raise UserError(f"agent {self.number}: {reply['error']['text']}")
            log.warning("agent %d, round %d: %s", self.number, message["round"], reply["error"]["text"])
            return False
        with self._replies:
            self.outbox.add()
        self._tend()
        return True

    @property
    def _open_round(self) -> int:
        return self.session.records.agents[self.number].open_round

    def _asked(self) -> dict[str, Any]:
        """What the agent would do, from its own entries. Its stop is in the journal before this returns."""
        reply = self.session.handle({"type": "ask", "agent": self.number})
        if not reply["ok"]:
            raise UserError(f"agent {self.number}: {reply['error']['text']}")
        return reply

    def _stop_reply(self) -> dict[str, Any]:
        """What `_asked` gives once the team stopped."""
        about = {"agent": self.number, "round": self._open_round}
        return {"ok": True, "type": "ask", **about, "stop": True, "action": None, "name": "STOP"}

    # -- the stop bit

    def _announce(self) -> None:
        """Set the public bit."""
        stop = self.session.records.agents[self.number].stop
        if stop is not None:
            self.bit.hear(stop["round"])
        with self._replies:
            self.outbox.add()
        self.link.publish(self.topics.stop, self.bit.payload, retain=True)
        self._tend(now=True)

    def _is_over(self) -> bool:
        """Whether the team stopped before the next round. A bit from outside is written to the journal."""
        self._tend()
        if self._is_reached() and not self.session.stopped:
            self.session.handle({"type": "stop", "round": self.bit.round, "note": "heard"})
        return self.session.stopped or self._is_reached()  # also on a full disk, where the stop is not written

    def _is_reached(self) -> bool:
        """Whether the next round is not played any more: rounds before the stop are, however late the agent is."""
        return self._open_round >= self.bit.round

    # -- the connection

    def _received(self, topic: str, payload: bytes) -> None:
        if topic == self.topics.stop:
            if self.bit.heard(payload):
                self.link.publish(self.topics.stop, self.bit.payload, retain=True)
        elif topic == self.topics.reply(self.number):
            self._replied_at, self._renew_after = time.monotonic(), RENEW * self.again
            with self._replies:
                self.outbox.replied(reply_of(payload))

    def _connected(self) -> None:
        """Set the bit again, whoever stopped: a broker that was started anew may have forgotten it."""
        self._sent_at, self._replied_at = 0.0, time.monotonic()
        if self.session.stopped:
            self.bit.hear(self.session.records.stop_round)
        if self.bit.is_set:
            self.link.publish(self.topics.stop, self.bit.payload, retain=True)

    def _tend(self, now: bool = False) -> None:
        """Send what was not acknowledged: new messages at once, others again after a while."""
        self.link.check()
        with self._replies:
            due = now or time.monotonic() - self._sent_at >= self.again
            waiting = list(self.outbox.waiting.values())
            if not waiting:
                self._replied_at = time.monotonic()
            messages = waiting if due else [m for m in waiting if m["id"] not in self._sent]
        if due:
            self._sent = set()
            self.link.look_again(self.topics.stop)
            if any(message["type"] == "stop" for message in waiting):
                self.link.publish(self.topics.stop, self.bit.payload, retain=True)
        sent = [m for m in messages if self.link.publish(self.topics.told(self.number), pack(self.team.identity, m))]
        self._sent |= {message["id"] for message in sent}
        if due:
            self._sent_at = time.monotonic()
        if time.monotonic() - self._replied_at > self._renew_after and self.link.online.is_set():
            self._replied_at, self._renew_after = time.monotonic(), min(2 * self._renew_after, RARELY)
            self.link.renew()

    def _tend_until(self, done: threading.Event) -> None:
        while not done.wait(STEP):
            if not self.link.refused:
                self._tend()

    def _waited(self, seconds: float) -> bool:
        """Wait for so long; whether the next round is still to be played."""
        until = time.monotonic() + seconds
        while not self._is_reached() and (left := until - time.monotonic()) > 0:
            time.sleep(min(STEP, left))
            self._tend()
        return not self._is_reached()

    def _hand_in(self) -> None:
        """Wait until everything is acknowledged, for as long as there is patience."""
        until = time.monotonic() + self.patience
        while self.outbox.waiting and time.monotonic() < until:
            self._tend()
            time.sleep(STEP)


def _check_owner(folder: Path, kept: str, own: str) -> None:
    """Refuse the journal of another agent or of another session: its entries would be sent as those of this one."""
    if kept != own and OWNER.fullmatch(kept):
        raise UserError(
            f"{folder} holds the journal of {kept}; asked was for {own}: give another folder, or go on as {kept}"
        )


def _plain(reading: Any) -> Any:
    """JSON values of what a function returned; what has none is no reading."""
    from icmape_agent.session.crew import plain

    try:
        return plain(reading)
    except UserError:
        return str(reading)
