"""Devices at a real broker: they act alone, lose nothing, and stop together."""

import itertools
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icmape_agent import STOP, UserError, load
from icmape_agent.mqtt import Broker, Clock, Coordinator, Device, Reader, Request
from icmape_agent.mqtt.broker import Link
from icmape_agent.session import Refusal, Session, journal
from tests.mqtt.support import Mosquitto, Reading, Running, device, free_port, paid, team, until


def alone(index: int) -> list[int]:
    """The actions of an agent that nobody stops, by its own readings."""
    agent, actions = team().agent(index), []
    while (action := agent.act()) != STOP:
        agent.see(action, paid(index, len(actions), action))
        actions.append(action)
    return actions


def told(folder: Path, index: int) -> dict[int, dict]:
    """The readings and misses of an agent in a journal."""
    entries = [line.entry for line in journal.read(folder / journal.NAME).lines]
    return {e["round"]: e for e in entries if e["type"] in ("tell", "missed") and e["agent"] == index}


def test_a_team_acts_stops_and_answers_as_in_step(coordinator, at, tmp_path):
    """Agents of different speed: stop and answer are those of a team that plays round by round."""
    devices = [Running(device(i, at, tmp_path, Reading(0.03 * i))) for i in range(3)]
    ended = [each.result() for each in devices]
    stop = min(len(alone(i)) for i in range(3))
    assert coordinator.session.records.stop_round == stop
    assert any(each.decided for each in ended)
    assert all(each.waiting == 0 and not each.refused and each.round >= stop for each in ended)
    for i in range(3):
        rounds = told(tmp_path / "session", i)
        assert [rounds[t]["action"] for t in sorted(rounds)] == alone(i)[: len(rounds)]
        assert all(rounds[t]["reading"] == paid(i, t, rounds[t]["action"]) for t in rounds)
    actions = [[alone(i)[t] for i in range(3)] for t in range(stop)]
    seen = [[paid(i, t, action) for i, action in enumerate(row)] for t, row in enumerate(actions)]
    expected, answer = team().posterior(actions, seen), coordinator.session.answer()
    assert (answer.name, answer.confidence) == (expected.name, pytest.approx(expected.confidence))


def test_a_device_without_a_broker_acts_and_hands_in_later(tmp_path, monkeypatch):
    """It plays its episode alone; a second start sends the same journal and asks for no reading."""
    monkeypatch.setattr("icmape_agent.mqtt.device.JOIN", 0.2)
    nowhere = Broker("127.0.0.1", free_port())
    first = device(0, nowhere, tmp_path, patience=0.0).run()
    assert first.decided
    assert first.waiting == len(alone(0)) + 1  # readings and the stop
    broker = Mosquitto(tmp_path / "broker", port=nowhere.port)
    try:
        with team().session(tmp_path / "session") as session:
            central, reading = Coordinator(session, broker=nowhere, name="july"), Reading()
            central.open()
            again = device(0, nowhere, tmp_path, reading).run()
            assert (again.waiting, again.refused, reading.asked) == (0, (), [])
            assert session.records.stop_round == len(alone(0))
            assert len(session.records.agents[0].readings) == len(alone(0))
            until(lambda: central.bit.round == len(alone(0)))
            central.close()
    finally:
        broker.stop()


def test_a_late_joiner_plays_the_rounds_before_the_stop_and_no_more(coordinator, at, tmp_path):
    ended = Running(device(0, at, tmp_path)).result()
    reading = Reading()
    late = Running(device(1, at, tmp_path, reading)).result()
    stop = min(len(alone(i)) for i in (0, 1))
    assert (late.round, reading.asked) == (stop, list(range(stop)))
    assert late.decided == (len(alone(1)) <= ended.round)


def test_a_late_joiner_on_a_clock_sees_the_bit_before_it_decides(coordinator, at, tmp_path, monkeypatch):
    """Its rounds have passed: it misses them, takes no action and sets no bit, although it would stop by itself.

    The retained bit arrives 0.2 s after the broker's reply to the subscription.
    """
    Running(device(0, at, tmp_path)).result()
    subscribed = Link._on_subscribe
    monkeypatch.setattr(Link, "_on_subscribe", lambda *code: (subscribed(*code), time.sleep(0.2)))
    agent, reading, stop, every = team().agent(1), Reading(), len(alone(0)), 20.0
    for _ in range(stop):
        assert agent.act() != STOP
        agent.missed()
    assert agent.act() == STOP
    clock = Clock.of(time.time() - (stop + 0.1) * every, every, 10.0)
    began = time.monotonic()
    late = Running(device(1, at, tmp_path, reading, clock=clock)).result()
    assert (late.decided, late.round, reading.asked) == (False, stop, [])
    assert time.monotonic() - began < 10.0  # it goes on once it has heard the bit


def test_a_broker_that_dies_and_comes_back_loses_nothing(coordinator, mosquitto, tmp_path):
    """It forgets the retained bit and all connections; readings of the time between arrive later."""
    devices = [Running(device(i, mosquitto.at, tmp_path, Reading(0.1))) for i in range(3)]
    until(lambda: any(agent.readings for agent in coordinator.session.records.agents))
    mosquitto.stop()
    time.sleep(0.5)
    mosquitto.start()
    ended = [each.result(30) for each in devices]
    assert all(each.waiting == 0 for each in ended)
    for i in range(3):
        until(lambda i=i: told(tmp_path / "session", i).keys() == told(tmp_path / f"agent-{i}", i).keys())
    bit = []
    link = Link(mosquitto.at, "late", ["icmape/july/stop"], lambda topic, payload: bit.append(payload))
    link.open()
    until(lambda: bit == [str(coordinator.session.records.stop_round).encode()])  # it is retained again
    link.close()


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


def test_the_folder_of_another_session_or_agent_is_refused(at, tmp_path):
    """Its entries would be handed in as those of this one."""
    own = device(0, at, tmp_path, patience=0.0)
    assert own.run().decided
    for index, name in ((0, "august"), (1, "july")):
        other = Device(team(), index, Reading(), broker=at, session=name, folder=own.folder, patience=0.0)
        asked = f"asked was for agent {index} of {name}: give another folder"
        with pytest.raises(UserError, match=f"holds the journal of agent 0 of july; {asked}"):
            other.run()


def test_readings_that_do_not_come_are_missed_and_the_agent_acts_as_icmape_says(coordinator, at, tmp_path):
    ended = Running(device(2, at, tmp_path, Reading(missed=lambda number: number % 2 == 1))).result()
    agent, actions = team().agent(2), []
    while (action := agent.act()) != STOP:
        number = len(actions)
        agent.missed(action) if number % 2 else agent.see(action, paid(2, number, action))
        actions.append(action)
    rounds = told(tmp_path / "session", 2)
    assert [rounds[t]["action"] for t in sorted(rounds)] == actions
    assert [rounds[t]["type"] for t in sorted(rounds)] == ["missed" if t % 2 else "tell" for t in range(len(actions))]
    assert ended.decided


def test_what_is_no_reading_of_the_problem_is_a_miss(coordinator, at, tmp_path, caplog):
    """A sensor that prints nonsense now and then does not end the episode."""
    printed = itertools.cycle([17, 1])
    Running(device(0, at, tmp_path, lambda action: next(printed))).result()
    rounds = told(tmp_path / "session", 0)
    assert [rounds[t]["type"] for t in range(4)] == ["missed", "tell", "missed", "tell"]
    assert "17" in caplog.text


class Broken(Reader):
    """It gives nothing, and says why."""

    told = "the probe is dry"

    def read(self, request: Request) -> None:
        return None


def test_a_broken_sensor_ends_the_device_before_the_episode_and_a_mended_one_goes_on(at, tmp_path, monkeypatch, caplog):
    """Without a clock it waits longer between failures, and says why each time."""
    monkeypatch.setattr("icmape_agent.mqtt.device.PAUSE", 0.01)
    began = time.monotonic()
    with pytest.raises(UserError, match=r"8 readings in a row did not come \(the probe is dry\): .* round 2"):
        Running(device(0, at, tmp_path, Broken())).result()
    assert time.monotonic() - began > 0.01 * (1 + 2 + 4 + 8 + 16 + 32)
    assert caplog.text.count("no reading: the probe is dry") == 8
    assert [entry["type"] for entry in told(tmp_path / "agent-0", 0).values()] == ["missed"] * 2
    mended = Reading()
    ended = Running(device(0, at, tmp_path, mended, patience=0.0)).result()
    assert mended.asked[0] == 2
    assert ended.decided


def test_misses_that_are_told_end_no_device(at, tmp_path):
    """The one who gives the readings says that they do not come."""
    silent = Broken()
    silent.told = ""
    assert Running(device(0, at, tmp_path, silent, patience=0.0)).result().decided


def test_a_first_observation_that_does_not_come_is_asked_for_with_pauses(at, tmp_path, monkeypatch):
    monkeypatch.setattr("icmape_agent.mqtt.device.PAUSE", 0.01)
    options = {"broker": at, "session": "july", "folder": tmp_path / "agent-0"}
    with pytest.raises(UserError, match="the probe is dry"):
        Running(Device(load("signal"), 0, Broken(), **options)).result()


def test_on_a_clock_rounds_that_passed_are_missed(coordinator, at, tmp_path):
    """A device that was down in rounds 0 to 2 tells that they are missed, and acts from round 3 on."""
    start = time.time() - 3.05 * 0.4
    reading = Reading()
    Running(device(0, at, tmp_path, reading, clock=Clock.of(start, 0.4, 0.05))).result(30)
    rounds = told(tmp_path / "session", 0)
    assert [rounds[t]["type"] for t in (0, 1, 2)] == ["missed"] * 3
    assert reading.asked[0] in (3, 4)
    assert all(entry["type"] == "tell" for t, entry in rounds.items() if t >= reading.asked[0])


def test_agents_on_a_clock_keep_step_and_heed_the_bit_before_they_act(coordinator, at, tmp_path):
    clock = Clock.of(time.time() + 0.5, 1.0, 0.6)
    ended = [each.result(30) for each in [Running(device(i, at, tmp_path, clock=clock)) for i in range(3)]]
    stop = coordinator.session.records.stop_round
    assert stop == min(len(alone(i)) for i in range(3))
    assert [each.round for each in ended] == [stop] * 3
    assert coordinator.is_complete


def test_agents_that_see_something_first_ask_for_it(mosquitto, tmp_path):
    """Source localization: the window before round 0 is in the journal before the first action."""
    asked = []

    def read(action):
        asked.append(action)
        return [np.zeros((5, 5)).tolist(), [[2, 2]]]

    light = load("signal")
    with light.session(tmp_path / "session") as session:
        central = Coordinator(session, broker=mosquitto.at, name="july")
        central.open()
        options = {"broker": mosquitto.at, "session": "july", "folder": tmp_path / "agent-0", "again": 0.3}
        Running(Device(light, 0, read, **options)).result()
        central.close()
        record = session.records.agents[0]
    assert asked[0] is None
    assert None not in asked[1:]
    assert record.first["reading"] == [np.zeros((5, 5)).tolist(), [[2, 2]]]
    assert asked[1] == light.agent(0, first=(np.zeros((5, 5)), [[2, 2]])).act()


def test_another_team_is_told_so_and_changes_nothing(coordinator, at, tmp_path):
    other = device(0, at, tmp_path)
    other.team.identity = "0" * 32
    ended = Running(other).result()
    assert {error["kind"] for _, error in ended.refused} == {"conflict"}
    assert not coordinator.session.records.agents[0].readings


def test_a_coordinator_survives_whatever_is_published(coordinator, at, tmp_path):
    link = Link(at, "mallory", ["other"], lambda topic, payload: None)
    link.open()
    assert link.joined.wait(5)
    for topic in ("icmape/july/0/told", "icmape/july/9/told", "icmape/july/x/told", "icmape/july/stop"):
        for payload in (b"", b"{", b"\xff\xfe", b"[" * 5000, b'{"team": 1, "message": 2}', b"null", b'["x", "x"]'):
            link.publish(topic, payload)
    link.close()
    assert Running(device(0, at, tmp_path)).result().waiting == 0
    assert len(coordinator.session.records.agents[0].readings) == len(alone(0))


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


def test_wrong_words_are_refused_in_one_sentence():
    for address in ("", "host:", "host:0", "host:99999", ":1883", "host:x"):
        with pytest.raises(UserError, match="HOST or HOST:PORT"):
            Broker.at(address)
    assert (Broker.at("board.local").port, Broker.at("[::1]:1884").host, Broker.at("::1").host) == (1883, "::1", "::1")
    for name in ("", "a/b", "+", "#", "x" * 65, "-a"):
        with pytest.raises(UserError, match="name of a session"):
            device(0, Broker("h", 1), Path("x")).__class__(
                team(), 0, Reading(), broker=Broker("h", 1), session=name, folder="x"
            )
    with pytest.raises(UserError, match="password needs a user name"):
        Broker.at("h", password_file=Path(__file__))
