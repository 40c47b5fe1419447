"""`icmape serve`: localhost unless told otherwise, links that survive a restart, errors before anything is opened."""

import itertools
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from icmape.cli import main
from icmape_agent.errors import UserError
from icmape_agent.server import protocol
from icmape_agent.server.command import serve_command
from icmape_agent.server.links import NAME
from icmape_agent.server.run import Serving, address, given, serve, server_of
from icmape_agent.server.service import Service
from tests.server.support import TEAM, team


class Noted:
    """In the place of Uvicorn's server: the addresses that are really bound, and what the coordinator is told."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.links: list[str] = []

    def made(self, app: Any, serving: Serving) -> "Noted":
        return self

    def run(self, sockets: list[socket.socket]) -> None:
        self.addresses = [each.getsockname()[0] for each in sockets]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    noted = Noted()

    def app(service: Service) -> None:
        noted.links = service.about()["links"]

    monkeypatch.setattr("icmape_agent.server.run.server_of", noted.made)
    monkeypatch.setattr("icmape_agent.server.run.make_app", app)
    return noted


@pytest.mark.parametrize(("words", "bound"), [([], "127.0.0.1"), (["--host", "0.0.0.0"], "0.0.0.0")])
def test_it_binds_to_this_machine_unless_told_otherwise(tmp_path, noted, words, bound):
    assert main(["serve", TEAM, "--folder", str(tmp_path / "s"), "--port", "0", *words]) == 0
    assert noted.addresses == [bound]


def test_links_that_the_coordinator_copies_are_those_that_were_printed(tmp_path, noted, capsys):
    url = "https://field.example.org/july"
    main(["serve", TEAM, "--folder", str(tmp_path / "s"), "--port", "0", "--url", f"{url}/"])
    printed = re.findall(r"player \d +(\S+)", capsys.readouterr().out)
    assert noted.links == printed
    assert len(printed) == team().gate.sizes.agents
    assert all(re.fullmatch(rf"{url}/[\w-]{{32}}/", link) for link in printed)


@contextmanager
def started(*words: str) -> Iterator[list[str]]:
    """A server in a process of its own, and the links that it printed. Ctrl-C ends it without a word."""
    command = [sys.executable, "-m", "icmape_agent.server", *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = list(itertools.takewhile(lambda line: not line.startswith("Serving"), process.stdout))
            yield re.findall(r"(?:coordinator|player \d) +(https?://127\.0\.0\.1:\d+/\S+/)", "".join(lines))
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=20)[1] == ""
        finally:
            process.kill()


def test_a_restart_goes_on_with_the_same_session_and_links(tmp_path):
    folder, tokens = tmp_path / "s", []
    for words in ([TEAM, "--folder", str(folder)], [str(folder)], [str(folder), "--new-links"]):
        with started(*words) as links:
            assert len(links) == 1 + team().gate.sizes.agents
            with urllib.request.urlopen(links[1] + "about.json") as reply:
                tokens.append([*(link.split("/")[3] for link in links), reply.read()])
    first, again, renewed = tokens
    assert again == first
    assert renewed[-1] == first[-1], "the session is the same"
    assert not set(renewed[:-1]) & set(first[:-1])
    assert (folder / NAME).stat().st_mode & 0o777 == 0o600


def certified(folder: Path) -> tuple[Path, Path]:
    """A certificate of its own for this machine, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    certificate, key = folder / "c.pem", folder / "k.pem"
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    return certificate, key


def test_with_a_certificate_links_are_https(tmp_path):
    certificate, key = certified(tmp_path)
    words = [TEAM, "--folder", str(tmp_path / "s"), "--certificate", str(certificate), "--key", str(key)]
    with started(*words) as links:
        assert [link.partition(":")[0] for link in links] == ["https"] * 4
        trusted = ssl.create_default_context(cafile=str(certificate))
        with urllib.request.urlopen(links[1] + "state", context=trusted) as reply:
            assert reply.status == 200


def test_a_connection_without_a_tls_handshake_is_cut(tmp_path, monkeypatch):
    """Asyncio's own limit is 60 seconds, and such connections are not counted among the 500."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    certificate, key = certified(tmp_path)
    server = server_of(lambda scope, receive, send: None, Serving(TEAM, tmp_path, certificate=certificate, key=key))
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        with socket.create_connection(listening.getsockname(), timeout=8) as silent, suppress(ConnectionResetError):
            assert silent.recv(1) == b""
        server.should_exit = True
        thread.join(10)


def test_a_port_that_is_taken_is_told_before_a_session_is_opened(tmp_path):
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UserError, match="choose another --port"):
            serve(Serving(TEAM, tmp_path / "s", port=taken.getsockname()[1]))
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([TEAM], "name the session's folder"),
        (["no-such-team", "--folder", "{}/s"], "no team file no-such-team"),
        (["{}"], "holds no session"),
        ([TEAM, "--folder", "{}/s", "--port", "99999"], "0..65535"),
        ([TEAM, "--folder", "{}/s", "--certificate", "{}/c.pem"], "belong together"),
        ([TEAM, "--folder", "{}/s", "--certificate", "{}/c.pem", "--key", "{}/k.pem"], "no certificate and its key"),
        ([TEAM, "--folder", "{}/s", "--host", "no host"], "choose another --port or --host"),
    ],
)
def test_what_cannot_be_served_is_one_sentence_and_opens_nothing(words, said, tmp_path, capsys):
    assert main(["serve", *(word.format(tmp_path) for word in words)]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_the_error_names_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "icmape_agent.server.run", None)
    with pytest.raises(UserError, match=r"icmape\[serve\]"):
        serve_command([TEAM, "--folder", str(tmp_path)], "icmape serve")


def test_a_session_remembers_its_team(tmp_path):
    with team().session(tmp_path / "s", source=TEAM):
        pass
    assert given(str(tmp_path / "s"), None) == (None, tmp_path / "s")
    with pytest.raises(UserError, match="leave out one of them"):
        given(str(tmp_path / "s"), tmp_path / "other")


def test_links_name_an_address_that_others_can_reach():
    assert address("127.0.0.1", 8000, False) == "http://127.0.0.1:8000"
    assert address("::1", 1, True) == "https://[::1]:1"
    assert address("0.0.0.0", 80, True) == f"https://{socket.gethostname()}:80"
