"""What goes between agents before the end: the stop bit, and nothing else. The broker's rules hold them to it."""

import json
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from paho.mqtt import client as mqtt

from icmape_agent.mqtt import Broker, Coordinator
from icmape_agent.mqtt.broker import Link
from icmape_agent.session import journal
from tests.mqtt.support import Mosquitto, Reading, Running, device, paid, team, until

RULES = Path(__file__).parents[2] / "docs" / "reference" / "mqtt.acl"
REPLY = {"ok", "type", "agent", "round", "late", "recorded", "id"}


@pytest.fixture
def guarded(tmp_path: Path):
    """A broker with a password for everyone and the rules of the documentation."""
    folder = tmp_path / "broker"
    folder.mkdir()
    for name in ("0", "1", "2", "coordinator"):
        made = ["-c"] if name == "0" else []
        words = ["mosquitto_passwd", *made, "-b", str(folder / "passwords"), name, f"word-{name}"]
        subprocess.run(words, check=True, capture_output=True)
    rules = f"password_file {folder}/passwords\nacl_file {RULES}\nallow_anonymous false\n"
    broker = Mosquitto(folder, rules)
    yield broker
    broker.stop()


def broker_for(broker: Mosquitto, name: str) -> Broker:
    return Broker("127.0.0.1", broker.port, name, f"word-{name}")


class Spy:
    """A client with the rights of a user that subscribes to everything and records what it gets."""

    def __init__(self, broker: Mosquitto, name: str, session: str = "july"):
        self.heard: list[tuple[str, bytes]] = []
        self.name, self.session = name, session
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=f"spy-{name}")
        self.client.username_pw_set(name, f"word-{name}")
        self.client.on_message = lambda client, data, message: self.heard.append(
            (message.topic, bytes(message.payload))
        )
        self.ready: list[int] = []
        self.client.on_subscribe = lambda client, data, number, codes, properties: self.ready.append(number)
        self.client.connect("127.0.0.1", broker.port)
        self.client.subscribe([("#", 1), ("icmape/#", 1), ("$SYS/#", 0)])
        for agent in range(3):
            self.client.subscribe([(f"icmape/{session}/{agent}/told", 1), (f"icmape/{session}/{agent}/reply", 1)])
        self.client.loop_start()
        until(lambda: len(self.ready) == 4)

    def replies(self) -> list[bytes]:
        """What came on this agent's own topic."""
        return [payload for topic, payload in self.heard if topic == f"icmape/{self.session}/{self.name}/reply"]

    def say(self, *messages: object) -> None:
        """Send messages as this agent."""
        for message in messages:
            sent = json.dumps({"team": team().identity, "message": message})
            self.client.publish(f"icmape/{self.session}/{self.name}/told", sent, qos=1)

    def ask(self, *messages: object) -> None:
        """Send messages as this agent, and wait for the replies."""
        before = len(self.replies())
        self.say(*messages)
        until(lambda: len(self.replies()) == before + len(messages))

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()
        self.client.on_message = self.client.on_subscribe = None
        del self.client


def test_an_agent_receives_the_stop_bit_and_replies_to_itself(guarded, tmp_path):
    """A spy with each agent's password hears all that this agent could: no reading and no action of another one."""
    spies = [Spy(guarded, str(i)) for i in range(3)]
    with team().session(tmp_path / "session") as session:
        central = Coordinator(session, broker=broker_for(guarded, "coordinator"), name="july")
        central.open()
        devices = [Running(device(i, broker_for(guarded, str(i)), tmp_path, Reading(0.03))) for i in range(3)]
        ended = [each.result() for each in devices]
        until(lambda: central.is_complete)
        stops = {each.round for each in ended if each.decided}
        central.close()
    time.sleep(0.2)
    for i, spy in enumerate(spies):
        spy.close()
        others = [(topic, payload) for topic, payload in spy.heard if topic != f"icmape/july/{i}/reply"]
        assert others
        assert {topic for topic, _ in others} == {"icmape/july/stop"}
        assert {payload for _, payload in others} <= {str(n).encode() for n in stops}
        replies = list(map(json.loads, spy.replies()))
        assert len(replies) >= ended[i].round
        assert all(set(reply) <= REPLY and reply["agent"] == i for reply in replies)


def traffic(broker: Mosquitto, folder: Path, seed: int) -> list[tuple[str, bytes]]:
    """What agent 0 receives while the others do and say anything, drawn from a seed, until agent 1 stops."""
    name, rng = f"july-{seed}", np.random.default_rng(seed)
    agents = [Spy(broker, str(i), name) for i in range(3)]
    with team().session(folder) as session:
        central = Coordinator(session, broker=broker_for(broker, "coordinator"), name=name)
        central.open()
        until(central.link.joined.is_set)

        def disturb() -> None:
            for other in (1, 2):
                number, action, reading = (int(rng.integers(n)) for n in (18, 2, 2))
                about = {"agent": other, "round": number, "note": f"{seed}"}
                told = {"type": "tell", **about, "action": action, "reading": reading, "id": f"{rng.integers(3)}"}
                agents[other].say([told, {"type": "missed", **about}][int(rng.integers(2))])

        for number in range(4):
            own = {"type": "tell", "agent": 0, "round": number, "action": 0, "reading": number % 2, "id": f"{number}"}
            for _ in range(5):
                disturb()
            agents[0].ask(own, {**own, "action": 1}, {"type": "status", "agent": 0}, {"type": "answer"}, "nothing")
        until(lambda: min(len(session.entries(agent)) for agent in (1, 2)) > 2)
        assert not session.stopped
        agents[1].say({"type": "stop", "agent": 1, "round": 3})
        until(lambda: (f"icmape/{name}/stop", b"3") in agents[0].heard)
        agents[0].ask({**own, "round": 4, "id": "late"})
        central.close()
    for each in agents:
        each.close()
    number = session.header["session"].encode()
    own = [(topic, payload) for topic, payload in agents[0].heard if topic.startswith(f"icmape/{name}/")]
    return [(topic.replace(name, "july"), payload.replace(number, b"N")) for topic, payload in own]


def test_others_change_no_byte_that_an_agent_receives(guarded, tmp_path):
    """The same messages of agent 0, others that differ in everything: the same bytes, and the same stop bit."""
    one, other = traffic(guarded, tmp_path / "one", 1), traffic(guarded, tmp_path / "other", 2)
    assert one == other
    assert {topic for topic, _ in one} == {"icmape/july/stop", "icmape/july/0/reply"}
    assert len(one) > 4 * 5
    journals = [entries(tmp_path / name) for name in ("one", "other")]
    assert journals[0] != journals[1]
    assert [entry for entry in journals[0] if entry[1] == 0] == [entry for entry in journals[1] if entry[1] == 0]


def entries(folder: Path) -> list[tuple]:
    lines = [line.entry for line in journal.read(folder / journal.NAME).lines[1:]]
    return [tuple(entry.get(name) for name in ("type", "agent", "round", "action", "reading")) for entry in lines]


def test_an_agent_cannot_speak_for_another(guarded, tmp_path):
    """What it publishes on another agent's topic, the broker drops; replies can be given by the coordinator only."""
    with team().session(tmp_path / "session") as session:
        central = Coordinator(session, broker=broker_for(guarded, "coordinator"), name="july")
        central.open()
        liar, spy = Spy(guarded, "1"), Spy(guarded, "0")
        message = {"type": "tell", "agent": 0, "round": 0, "action": 0, "reading": paid(0, 0, 0), "id": "x"}
        payload = json.dumps({"team": team().identity, "message": message})
        for topic in ("icmape/july/0/told", "icmape/july/0/reply"):
            liar.client.publish(topic, payload, qos=1).wait_for_publish(5)
        own = {**message, "agent": 1}
        liar.client.publish("icmape/july/1/told", json.dumps({"team": team().identity, "message": message}), qos=1)
        liar.client.publish("icmape/july/1/told", json.dumps({"team": team().identity, "message": own}), qos=1)
        until(lambda: 0 in session.records.agents[1].readings)
        assert not session.records.agents[0].readings
        assert not spy.heard
        until(lambda: len(liar.replies()) == 2)
        kinds = [json.loads(reply).get("error", {}).get("kind") for reply in liar.replies()]
        assert kinds == ["forbidden", None]
        for each in (liar, spy, central):
            each.close()


def test_another_agents_password_ends_no_connection(guarded, tmp_path):
    """A broker ends the connection of a client when another one comes with its id, whatever its user."""
    link = Link(broker_for(guarded, "0"), "july-0", ["icmape/july/stop"], lambda topic, payload: None)
    lost, ended = [], link._client.on_disconnect
    link._client.on_disconnect = lambda *code: (lost.append(code), ended(*code))
    link.open()
    assert link.joined.wait(5)
    intruder = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="july-0")
    intruder.username_pw_set("1", "word-1")
    intruder.connect("127.0.0.1", guarded.port)
    intruder.loop_start()
    until(intruder.is_connected)
    time.sleep(0.3)
    intruder.disconnect()
    intruder.loop_stop()
    assert not lost
    link.close()


def with_passwords(broker: Mosquitto, word: str) -> None:
    """Start the broker again; agent 0 has this password from here on."""
    broker.stop()
    words = ["mosquitto_passwd", "-b", str(broker.folder / "passwords"), "0", word]
    subprocess.run(words, check=True, capture_output=True)
    broker.start()


def test_a_broker_that_refuses_for_a_while_ends_no_acting_device(guarded, tmp_path, monkeypatch):
    """It acts on, keeps trying, and hands everything in once it is let in again."""
    monkeypatch.setattr("icmape_agent.mqtt.broker.SLOWEST", 1)
    with team().session(tmp_path / "session") as session:
        central = Coordinator(session, broker=broker_for(guarded, "coordinator"), name="july")
        central.open()
        reading = Reading(0.3)
        acting = device(0, broker_for(guarded, "0"), tmp_path, reading, patience=20.0)
        running = Running(acting)
        until(lambda: bool(session.records.agents[0].readings))
        with_passwords(guarded, "another")
        until(lambda: bool(acting.link.refused))
        asked = len(reading.asked)
        until(lambda: len(reading.asked) > asked or acting.session.stopped)
        with_passwords(guarded, "word-0")
        assert running.result(40).waiting == 0
        assert session.stopped
        central.close()


def test_a_wrong_password_is_told_at_once(guarded, tmp_path, monkeypatch):
    from icmape_agent import UserError

    monkeypatch.setattr("icmape_agent.mqtt.device.JOIN", 0.5)
    wrong = Broker("127.0.0.1", guarded.port, "0", "other")
    with pytest.raises(UserError, match="check user name and password"):
        Running(device(0, wrong, tmp_path, Reading(0.05))).result()
