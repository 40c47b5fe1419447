"""The stop bit at a real broker: whoever knows it sets it again, and the earliest one stays."""

import threading
import time
from typing import Any

import pytest

from icmape_agent.mqtt import Broker, Coordinator, Request
from icmape_agent.mqtt.broker import Link
from icmape_agent.session import Refusal, Session
from tests.mqtt.support import Mosquitto, Reading, Running, device, team, until


class Held(Reading):
    """It gives no reading before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def read(self, request: Request) -> Any:
        self.let_go.wait(20)
        return super().read(request)


def heard_by_a_late_joiner(mosquitto: Mosquitto, link: Link) -> bytes:
    """The bit that is retained after a restart of the broker; `link` is the one client that heard it before."""
    link._client.reconnect_delay_set(0.05, 0.1)
    mosquitto.stop()
    until(lambda: not link.online.is_set())
    mosquitto.start()
    until(link.online.is_set)
    bit: list[bytes] = []
    late = Link(mosquitto.at, "late", ["icmape/july/stop"], lambda topic, payload: bit.append(payload))
    late.open()
    try:
        until(lambda: bool(bit), 3)
    finally:
        late.close()
    return bit[0]


def set_bit(at: Broker, payload: bytes) -> None:
    """By a client that is not heard again."""
    link = Link(at, "gone", ["other"], lambda topic, payload: None)
    link.open()
    assert link.joined.wait(5)
    link.publish("icmape/july/stop", payload, retain=True)
    link.close()


def test_a_coordinator_that_heard_the_bit_sets_it_again_at_a_new_broker(coordinator, mosquitto):
    set_bit(mosquitto.at, b"4")
    until(lambda: coordinator.bit.is_set)
    assert not coordinator.session.stopped
    assert heard_by_a_late_joiner(mosquitto, coordinator.link) == b"4"


def test_a_device_that_heard_the_bit_sets_it_again_at_a_new_broker(mosquitto, tmp_path):
    """It is in a round before the stop, and goes on to it."""
    held = Held()
    behind = device(0, mosquitto.at, tmp_path, held, patience=0.0)
    running = Running(behind)
    until(behind.link.joined.is_set)
    set_bit(mosquitto.at, b"1")
    until(lambda: behind.bit.is_set)
    assert heard_by_a_late_joiner(mosquitto, behind.link) == b"1"
    held.let_go.set()
    assert (running.result().round, held.asked) == (1, [0])


def test_a_device_acts_no_more_after_the_bit_though_it_cannot_write_that_it_heard_it(at, tmp_path, monkeypatch):
    """On a full disk the stop is not recorded; the one who gives the readings is told of it all the same."""
    record, told = Session.record, []

    def full(session: Session, entry: dict) -> dict:
        if entry["type"] == "stop":
            raise Refusal("storage", "no room")
        return record(session, entry)

    monkeypatch.setattr(Session, "record", full)
    set_bit(at, b"2")
    reading = Reading()
    monkeypatch.setattr(reading, "end", told.append)
    ended = Running(device(0, at, tmp_path, reading, patience=0.0)).result()
    assert (ended.round, reading.asked) == (2, [0, 1])
    assert told == [{"ok": True, "type": "ask", "agent": 0, "round": 2, "stop": True, "action": None, "name": "STOP"}]


def test_the_earliest_stop_is_the_one_that_stays_retained(at, mosquitto, tmp_path):
    """A later stop that is published after an earlier one is put right by whoever knows better."""
    bits = []
    knows = Link(at, "knows", ["icmape/july/stop"], lambda topic, payload: bits.append(payload))
    knows.open()
    assert knows.joined.wait(5)
    with team().session(tmp_path / "session") as session:
        central = Coordinator(session, broker=at, name="july")
        central.open()
        until(central.link.joined.is_set)
        for payload in (b"2", b"7", b"nonsense", b"-1", b"99999", b""):
            knows.publish("icmape/july/stop", payload, retain=True)
            time.sleep(0.1)
        knows.publish("icmape/july/stop", b"5", retain=True)
        until(lambda: bits[-1] == b"2")
        assert central.bit.round == 2
        central.close()
    knows.close()


def retained(at: Broker) -> bytes | None:
    """What a client that joins now hears of the bit."""
    bits: list[bytes] = []
    link = Link(at, "late", ["icmape/july/stop"], lambda topic, payload: bits.append(payload))
    link.open()
    try:
        assert link.joined.wait(5)
        time.sleep(0.2)
    finally:
        link.close()
    return bits[0] if bits else None


@pytest.mark.parametrize("payload", [b"", b"999", b"x", b"\xff", b"-1"])
def test_a_bit_that_was_erased_is_set_again(coordinator, at, payload):
    """By the coordinator, which knows it: a late joiner hears it."""
    set_bit(at, b"4")
    until(lambda: coordinator.bit.is_set)
    set_bit(at, payload)
    until(lambda: retained(at) == b"4")


def test_a_device_sets_an_erased_bit_again_too(at, tmp_path):
    held = Held()
    behind = device(0, at, tmp_path, held, patience=0.0)
    running = Running(behind)
    until(behind.link.joined.is_set)
    set_bit(at, b"1")
    until(lambda: behind.bit.is_set)
    set_bit(at, b"")
    until(lambda: retained(at) == b"1")
    held.let_go.set()
    assert running.result().round == 1


def test_a_coordinator_ends_without_the_agent_that_set_the_bit(mosquitto, at, tmp_path):
    """That agent is lost for good: the coordinator stops the session in the round of the bit."""
    link = Link(at, "lost", ["other"], lambda topic, payload: None)
    link.open()
    assert link.joined.wait(5)
    link.publish("icmape/july/stop", b"2", retain=True)
    with team().session(tmp_path / "session") as session:
        central = Coordinator(session, broker=at, name="july")
        central.run(wait=1.0, quiet=0.1)
        assert session.records.stop_round == 2
        assert session.records.ended is not None
    link.close()


def test_a_coordinator_that_records_the_stop_of_a_lost_agent_announces_it_before_it_leaves(tmp_path):
    """The broker may have forgotten the bit since."""
    with team().session(tmp_path / "session") as session:
        central, published = Coordinator(session, broker=Broker("127.0.0.1", 1), name="july"), []
        central.link.publish = lambda *message, retain: published.append((*message, retain))
        central.bit.hear(2)
        assert central._is_done(wait=0.0, quiet=0.0)
        assert published == [("icmape/july/stop", b"2", True)]
