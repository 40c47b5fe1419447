"""A broker for the tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: pip install 'icmape[mqtt]'")

from icmape_agent.mqtt import Broker, Coordinator
from tests.mqtt.support import MOSQUITTO, Mosquitto, team


@pytest.fixture(autouse=True)
def needs_mosquitto() -> None:
    if MOSQUITTO is None:
        pytest.skip("mosquitto is not installed (apt-get install mosquitto)")


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    broker = Mosquitto(tmp_path / "broker")
    yield broker
    broker.stop()


@pytest.fixture
def coordinator(mosquitto: Mosquitto, tmp_path: Path) -> Iterator[Coordinator]:
    with team().session(tmp_path / "session") as session:
        central = Coordinator(session, broker=mosquitto.at, name="july")
        central.open()
        yield central
        central.close()


@pytest.fixture
def at(mosquitto: Mosquitto) -> Broker:
    return mosquitto.at
