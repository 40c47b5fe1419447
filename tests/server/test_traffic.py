"""Nothing goes between agents before the end but the stop bit: read from the traffic, byte by byte."""

import json
import re
import socket
from contextlib import closing
from pathlib import Path

import numpy as np

from icmape_agent.server.app import AGENT_FILES
from tests.server.support import Running, running, team, tell

OWN = [(0, 1), (1, 0), (0, 0)]  # actions and readings
PAGES = ("", *AGENT_FILES, "icmape.js", "team.json", "about.json")


def received(server: Running, lines: list[str], body: str = "") -> bytes:
    """All bytes that a request of agent 0 gets back; what differs by session is named."""
    head = [*lines, "Host: localhost", "Connection: close", f"Content-Length: {len(body)}", "", body]
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=10)) as connection:
        connection.sendall("\r\n".join(head).encode())
        data = b""
        while part := connection.recv(65536):
            data += part
    assert data.startswith(b"HTTP/1.1 ")
    return data.replace(server.session.header["session"].encode(), b"SESSION")


def get(server: Running, page: str) -> bytes:
    return received(server, [f"GET {server.path(0)}{page} HTTP/1.1"])


def post(server: Running, message: dict) -> bytes:
    lines = [f"POST {server.path(0)}messages HTTP/1.1", "Content-Type: application/json"]
    return received(server, lines, json.dumps(message))


def traffic(folder: Path, seed: int) -> list[bytes]:
    """What agent 0 receives while the others do and say anything, drawn from a seed."""
    rng, heard = np.random.default_rng(seed), []
    with running(folder) as server:
        others = range(1, team().gate.sizes.agents)

        def disturb() -> None:
            for agent in others:
                number, action, reading = (int(rng.integers(n)) for n in (18, 2, 2))
                kinds = [tell(agent, number, action, reading, note=f"{seed}", id=f"{rng.integers(3)}")]
                kinds += [{"type": "missed", "agent": agent, "round": number}, {"type": "status", "agent": agent}]
                server.send(kinds[int(rng.integers(3))], agent)
            server.get("state")
            server.get("answer?early")

        heard += [get(server, page) for page in PAGES]
        for number, (action, reading) in enumerate(OWN):
            disturb()
            heard.append(post(server, {"type": "ask", "agent": 0}))
            disturb()
            message = tell(0, number, action, reading, id=f"own-{number}", time="2026-07-01T12:00:00Z")
            heard += [post(server, message), get(server, "state"), post(server, {**message, "reading": 1 - reading})]
            heard += [post(server, {"type": kind, "agent": 0}) for kind in ("status", "answer", "show")]
            heard += [post(server, tell(1, number)), get(server, "journal"), get(server, "team.json")]
        assert not server.session.stopped, "the comparison ends where somebody stops"
        assert server.session.entries(1)
        server.send({"type": "stop"})
        heard.append(get(server, "state"))
    return heard


def test_others_change_no_byte_that_an_agent_receives(tmp_path):
    """The same readings of agent 0, others that differ in everything: the same bytes, and the same stop bit."""
    one, other = traffic(tmp_path / "one", 1), traffic(tmp_path / "other", 2)
    assert one == other
    assert (tmp_path / "one" / "journal.jsonl").stat().st_size != (tmp_path / "other" / "journal.jsonl").stat().st_size


def test_the_stop_bit_of_another_agent_changes_that_bit_and_nothing_else(tmp_path):
    with running(tmp_path) as server:
        post(server, tell(0, 0, 0, 1))
        before = get(server, "state")
        server.send({"type": "stop", "agent": 1, "round": 3, "note": "said to nobody"}, 1)
        after = get(server, "state")
    bit = re.compile(rb'"stopped":(true|false)')
    assert (bit.search(before).group(1), bit.search(after).group(1)) == (b"false", b"true")
    assert _without_length(bit.sub(b"", before)) == _without_length(bit.sub(b"", after))


def _without_length(data: bytes) -> bytes:
    return re.sub(rb"content-length: \d+", b"", data)
