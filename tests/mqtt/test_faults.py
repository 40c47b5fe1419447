"""A connection that doubles, delays, drops and cuts loses nothing and tells nothing twice."""

import time

from benchmarks.field_proxy import Faults, Proxy
from icmape_agent.mqtt import Broker, Clock
from icmape_agent.mqtt.broker import Link
from icmape_agent.session import journal
from tests.mqtt.support import Reading, Running, device, until

WILD = Faults(doubled=0.3, delayed=0.3, dropped=0.25, cut=0.04, longest=0.1)


def entries(folder, agent: int) -> list[tuple]:
    lines = [line.entry for line in journal.read(folder / journal.NAME).lines]
    names = ("type", "round", "action", "reading")
    return sorted(
        tuple(entry.get(name, -1) for name in names)
        for entry in lines
        if entry["type"] in ("tell", "missed") and entry["agent"] == agent
    )


def test_wild_connections_lose_nothing(coordinator, mosquitto, tmp_path):
    proxy = Proxy(mosquitto.port, WILD, seed=3).start()
    at = Broker("127.0.0.1", proxy.at)
    clock = Clock.of(time.time() + 0.2, 0.25, 0.1)
    readings = [Reading(missed=lambda number, i=i: (number + i) % 4 == 3) for i in range(3)]
    devices = [Running(device(i, at, tmp_path, readings[i], clock=clock, again=0.2)) for i in range(3)]
    ended = [each.result(40) for each in devices]
    proxy.stop()
    assert min(vars(proxy.counts).values()) > 0
    assert all((each.waiting, each.refused) == (0, ()) for each in ended)
    until(lambda: coordinator.session.stopped)
    for i in range(3):
        told, kept = entries(tmp_path / "session", i), entries(tmp_path / f"agent-{i}", i)
        assert told == kept
        assert len({row[1] for row in told}) == len(told)
        assert len(readings[i].asked) == len(set(readings[i].asked))
    assert any(each.decided for each in ended)


class Jammed(Proxy):
    """The first connection passes no messages, though it stays open."""

    connections = 0

    async def _serve(self, reader, writer):
        self.connections += 1
        await super()._serve(reader, writer)

    def _message(self, packet, writer):
        return True if self.connections == 1 else super()._message(packet, writer)


def test_a_connection_that_passes_no_more_messages_is_made_anew(coordinator, mosquitto, tmp_path):
    proxy = Jammed(mosquitto.port, Faults(0, 0, 0, 0), seed=0).start()
    ended = Running(device(0, Broker("127.0.0.1", proxy.at), tmp_path, again=0.1)).result()
    assert (ended.waiting, proxy.connections) == (0, 2)
    proxy.stop()
    assert entries(tmp_path / "session", 0) == entries(tmp_path / "agent-0", 0) != []


def test_a_message_that_comes_while_a_link_closes_is_no_error(at):
    link = Link(at, "closing", ["icmape/july/stop"], lambda topic, payload: None)
    link.open()
    assert link.joined.wait(5)
    link.close()
    link.online.set()  # as in the thread of a connection that ends a moment later
    assert not link.publish("icmape/july/stop", b"3")
    link.look_again("icmape/july/stop")
    link.renew()
