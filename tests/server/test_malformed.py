"""Whatever comes in: one JSON error, no trace of the program, and the journal as it was."""

import http.client
import json
import logging
import random
import socket
import time
from contextlib import closing

import pytest

from icmape_agent.server import limits, protocol
from tests.server.support import running, tell

METHODS = ["GET", "POST", "PUT", "HEAD", "PATCH", "BREW", "get", "", "CONNECT", "TRACE", "G\x00T", "P" * 3000]
PATHS = ["", "state", "messages", "team.json", "../../etc/passwd", "%2e%2e/%2e%2e/", "%00", "%ff%fe", "?" + "a" * 9000]
PATHS += ["messages/", "messages?x=%", "answer?early", "journal", "é", "\x7f", "a b", "//", "#", "*"]
HEADERS = ["Content-Type: application/json", "Content-Type: text/plain", "Content-Length: 5", "Content-Length: -1"]
HEADERS += ["Content-Length: 99999999999999999999999", "Content-Length: x", "Transfer-Encoding: chunked", "no colon"]
HEADERS += ["Expect: 100-continue", "Upgrade: websocket\r\nConnection: Upgrade", "X: " + "y" * 20_000, "Host: b"]
HEADERS += ["Connection: close", "Cookie: \xff", "If-None-Match: *", "Range: bytes=0-", ": empty", "Accept: */*"]
VALUES = [None, -1, 2**63, 10**400, 1e308, 0.5, True, "x", "\ud800", [], {}, [[]] * 50, "a" * 3000, "NaN", float("inf")]


def body(rng: random.Random) -> bytes:
    """JSON that is no message, or is cut, or is no JSON."""
    message = {"type": "tell", "agent": 0, "round": 0, "action": 0, "reading": 1}  # it is recorded
    for name in rng.sample([*message, "id", "extra", "session"], rng.randint(1, 2)):
        message[name] = rng.choice(VALUES)
    text = json.dumps(rng.choice([message, message, [message], rng.choice(VALUES)]))
    kinds = [text[: rng.randint(0, len(text))], text + "}", "[" * 40_000, text.replace('"', "'"), "\x00" * 9, ""]
    return rng.choice([text] * 6 + kinds).encode("utf-8", "replace")


def request(rng: random.Random, base: str) -> bytes:
    """A request in which something is wrong."""
    if rng.random() < 0.4:  # a whole request whose content is wrong
        given = body(rng)
        head = f"POST {base}messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(given)}\r\n\r\n".encode() + given
    path = rng.choice([base, base, base, "/", "/wrong/", "http://x/", ""]) + rng.choice(PATHS)
    given, method = body(rng), rng.choice([*METHODS, *["POST"] * 8])
    lines = [
        f"{method} {path} HTTP/{rng.choice(['1.1', '1.1', '1.0', '9.9', ''])}",
        "Host: x",
        *rng.sample(HEADERS, rng.randint(0, 2)),
    ]
    if rng.random() < 0.6:
        lines += ["Content-Type: application/json", f"Content-Length: {len(given) + rng.choice([0, 0, 0, 3, -1])}"]
    whole = "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1", "replace") + given
    return whole[: rng.randint(1, len(whole))] if rng.random() < 0.15 else whole


def test_1000_malformed_requests_change_nothing(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.05)
    rng, seen = random.Random(7), {}
    with running(tmp_path) as server:
        server.send(tell(0, 0, 0, 1), 0)
        journal = (tmp_path / "journal.jsonl").read_bytes()
        for _ in range(1000):
            data = request(rng, rng.choice([server.path(0), server.path()]))
            reply = server.raw(data)
            status = int(reply[9:12]) if reply else 0
            seen[status] = seen.get(status, 0) + 1
            assert status < 500, (data, reply)
            assert b"Traceback" not in reply
            _head, _, content = reply.partition(b"\r\n\r\n")
            if status >= 400 and content:
                error = json.loads(content)
                assert set(error) <= {"ok", "error", "id"}
                assert error["error"]["text"].count("\n") == 0
        assert (tmp_path / "journal.jsonl").read_bytes() == journal
        assert server.send(tell(0, 1, 0, 1), 0).status == 200
    told = capfd.readouterr()
    assert (told.out, told.err) == ("", ""), "nothing is printed, so no token and no traceback"
    assert {400, 401, 404, 405, 408, 409, 415} <= set(seen), seen
    assert seen.get(200, 0) < 300


def test_half_of_a_surrogate_pair_is_malformed_wherever_it_stands(server):
    """As an id, too, which replies repeat."""
    whole = {"type": "tell", "agent": 0, "round": 0, "action": 0, "reading": 1}
    for name in (*whole, "id", "note", "time", "session"):
        reply = server.send({**whole, name: "\ud800"}, 0)
        assert (reply.status, reply.json["error"]["kind"]) == (400, "malformed"), name
    assert server.session.entries() == []


def test_what_is_too_slow_too_long_or_too_often_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.2)
    with running(tmp_path, rate=20) as server:
        post = f"POST {server.path(0)}messages HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        began = time.monotonic()
        assert server.raw(b"GET / HTT").startswith(b"HTTP/1.1 408 ")
        assert server.raw(f"{post}Content-Length: 50\r\n\r\n{{".encode()).startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - began < 3
        long = json.dumps(tell(0, 0, note="x" * limits.MOST_BYTES))
        assert server.send(json.loads(long), 0).status == 413
        chunk = b"8800\r\n" + b" " * 0x8800 + b"\r\n"
        chunked = f"{post}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk * 3
        assert server.raw(chunked).startswith(b"HTTP/1.1 413 ")
        assert server.ask("POST", server.path(0) + "messages", "{}").status == 415
        statuses = [server.get("state", 0).status for _ in range(30)]
        assert 429 in statuses
        assert server.get("state", 1).status == 200, "each link has a rate of its own"
        assert server.session.entries() == []


def dribble(connection: socket.socket, seconds: float) -> None:
    """One byte after another, until the other side has enough."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        connection.sendall(b"X")
        time.sleep(0.02)


def test_a_request_that_comes_byte_by_byte_gets_no_more_time(tmp_path, monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    with running(tmp_path) as server, socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        began = time.monotonic()
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            dribble(connection, 4)
        assert time.monotonic() - began < 2


def test_only_headers_are_waited_for_in_that_time(tmp_path, monkeypatch):
    """An answer may take longer, and so may a page between two of its questions."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    with running(tmp_path) as server:
        state = server.service.state
        monkeypatch.setattr(server.service, "state", lambda: (time.sleep(0.5), state())[1])
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)) as connection:
            for _ in range(2):
                connection.request("GET", server.path() + "state")
                reply = connection.getresponse()
                assert (reply.status, json.loads(reply.read())["ok"]) == (200, True)
                time.sleep(0.5)


def test_a_fault_of_the_server_is_one_json_error(tmp_path, monkeypatch, caplog):
    with running(tmp_path) as server:
        monkeypatch.setattr(server.service, "state", lambda: 1 / 0)
        reply = server.get("state")
        assert (reply.status, reply.json["ok"]) == (500, False)
        assert "ZeroDivisionError" not in reply.body.decode()
        assert "Traceback" not in caplog.text
        assert server.service.links.coordinator not in caplog.text
        assert server.get("about.json").status == 200


class Watched(logging.Handler):
    """A handler of the program that a server runs in; it says when it is closed."""

    open = True

    def close(self):
        self.open = False
        super().close()


def test_the_logging_of_the_program_is_left_alone(tmp_path):
    """Handlers that are closed may close the streams they write to: another's log, or the terminal."""
    handler = Watched()
    with running(tmp_path) as server:
        assert server.get("about.json").status == 200
    assert handler.open
    handler.close()
