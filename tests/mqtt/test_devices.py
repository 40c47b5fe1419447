"""Devices at a real broker: they act alone, lose nothing, and stop together."""

import itertools
import time
from pathlib import Path

import numpy as np
import pytest

from icmape_agent import STOP, UserError, load
from icmape_agent.mqtt import Broker, Clock, Coordinator, Device, Reader, Request
from icmape_agent.mqtt.broker import Link
from tests.mqtt.support import Mosquitto, Reading, Running, device, free_port, paid, team, told, until


def alone(index: int) -> list[int]:
    """The actions of an agent that nobody stops, by its own readings."""
    agent, actions = team().agent(index), []
    while (action := agent.act()) != STOP:
        agent.see(action, paid(index, len(actions), action))
        actions.append(action)
    return actions


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
