"""What goes between agents before the end: the stop bit, and nothing else. The broker's rules hold them to it."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from paho.mqtt import client as mqtt

from icmape_agent.mqtt import Broker, Coordinator
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

    def __init__(self, broker: Mosquitto, name: str):
        self.heard: list[tuple[float, str, bytes]] = []
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=f"spy-{name}")
        self.client.username_pw_set(name, f"word-{name}")
        self.client.on_message = lambda client, data, message: self.heard.append(
            (time.monotonic(), message.topic, bytes(message.payload))
        )
        self.ready: list[int] = []
        self.client.on_subscribe = lambda client, data, number, codes, properties: self.ready.append(number)
        self.client.connect("127.0.0.1", broker.port)
        self.client.subscribe([("#", 1), ("icmape/#", 1), ("$SYS/#", 0)])
        for agent in range(3):
            self.client.subscribe([(f"icmape/july/{agent}/told", 1), (f"icmape/july/{agent}/reply", 1)])
        self.client.loop_start()
        until(lambda: len(self.ready) == 4)

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
        others = [(topic, payload) for _, topic, payload in spy.heard if topic != f"icmape/july/{i}/reply"]
        assert others
        assert {topic for topic, _ in others} == {"icmape/july/stop"}
        assert {payload for _, payload in others} <= {str(n).encode() for n in stops}
        replies = [json.loads(payload) for _, topic, payload in spy.heard if topic == f"icmape/july/{i}/reply"]
        assert len(replies) >= ended[i].round
        assert all(set(reply) <= REPLY and reply["agent"] == i for reply in replies)
        first = min(at for at, topic, _ in spy.heard if topic == "icmape/july/stop")
        late = [
            reply
            for (at, topic, payload), reply in zip(
                [h for h in spy.heard if h[1].endswith("reply")], replies, strict=True
            )
            if reply.get("late") and at < first - 1
        ]
        assert not late  # no reply tells of the stop long before the bit does


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
        replies = lambda: [json.loads(p) for _, topic, p in liar.heard if topic.endswith("1/reply")]  # noqa: E731
        until(lambda: len(replies()) == 2)
        kinds = [reply.get("error", {}).get("kind") for reply in replies()]
        assert kinds == ["forbidden", None]
        for each in (liar, spy, central):
            each.close()


def test_a_wrong_password_is_told_at_once(guarded, tmp_path):
    from icmape_agent import UserError

    wrong = Broker("127.0.0.1", guarded.port, "0", "other")
    with pytest.raises(UserError, match="check user name and password"):
        Running(device(0, wrong, tmp_path, Reading(0.05))).result()
