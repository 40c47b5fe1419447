"""The command line, as processes that need no JAX."""

import contextlib
import io
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from icmape.cli import main as icmape
from icmape_agent.command import main
from icmape_agent.mqtt import Command, Coordinator, Request
from icmape_agent.session import journal
from tests.mqtt.support import Mosquitto, paid, team, until

PROGRAM = [sys.executable, "-m", "icmape_agent"]
READ = "import time, zlib, sys; time.sleep(0.1); a = tuple(map(int, sys.argv[1:]))"
READ += "; print(int(zlib.crc32(repr(a).encode()) % 3 > 0))"
Start = Callable[..., subprocess.Popen]


@pytest.fixture
def start(mosquitto: Mosquitto) -> Iterator[Start]:
    """Starts commands at the broker; what still runs at the end is killed."""
    with ExitStack() as stack:

        def begin(*words: str) -> subprocess.Popen:
            address = ["--mqtt", f"127.0.0.1:{mosquitto.port}", "--session", "july"]
            pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
            process = subprocess.Popen([*PROGRAM, *words, *address], text=True, **pipes)
            for stream in (process.stdin, process.stdout, process.stderr):
                stack.callback(closed, stream)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield begin


def closed(stream: Any) -> None:
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def test_three_processes_and_a_coordinator(start, tmp_path):
    """One agent asks a program for readings, two are given them line by line; one of these is killed and goes on."""
    folders = [str(tmp_path / f"agent-{i}") for i in range(3)]
    central = start("coordinate", str(tmp_path / "session"), "--team", "bandit-quick", "--wait", "5")
    feeds = [start("agent", "bandit-quick", str(i), "--folder", folders[i]) for i in (1, 2)]
    request = json.loads(feeds[0].stdout.readline())
    assert (request["agent"], request["round"], request["stop"]) == (1, 0, False)
    answer(feeds[0], request)
    until(lambda: '"tell"' in (tmp_path / "agent-1" / journal.NAME).read_text())
    feeds[0].send_signal(signal.SIGKILL)
    feeds[0].wait()
    feeds[0] = start("agent", "bandit-quick", "1", "--folder", folders[1])
    again = json.loads(feeds[0].stdout.readline())
    assert (again["round"], again["stop"]) == (1, False)
    program = f"{sys.executable} -S -c '{READ}' {{agent}} {{round}} {{action}}"
    asks = start("agent", "bandit-quick", "0", "--folder", folders[0], "--read", program)
    answer(feeds[0], again)
    threads = [threading.Thread(target=feed, args=(each,)) for each in feeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert [each.wait(30) for each in (asks, *feeds)] == [0, 0, 0]
    assert "every reading is acknowledged" in asks.stderr.read()
    assert central.wait(40) == 0
    assert central.stdout.read().startswith("answer: capacities")
    with team().session(tmp_path / "session", write=False) as session:
        assert session.stopped
        for i in range(3):
            for number, entry in session.records.agents[i].readings.items():
                assert entry["reading"] == paid(i, number, entry["action"])


def answer(process: subprocess.Popen, request: dict) -> None:
    """Give the reading that was asked for."""
    reading = paid(request["agent"], request["round"], request["action"])
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps({"reading": reading, "round": request["round"]}) + "\n")
        process.stdin.flush()


def feed(process: subprocess.Popen) -> None:
    """Answer until the end."""
    for line in process.stdout:
        if (request := json.loads(line))["stop"]:
            return
        answer(process, request)


def test_a_coordinator_without_an_answer_says_why_and_ends_with_3(tmp_path, monkeypatch, capsys):
    """An agent of `signal` was never heard, and its observation before round 0 is part of every answer."""
    monkeypatch.setattr(Coordinator, "run", lambda self, wait: self.session.stop())
    words = ["coordinate", str(tmp_path), "--team", "signal", "--mqtt", "127.0.0.1:1", "--session", "july"]
    assert main(words) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("no answer: agents 0, 1, 2 never told the observation before round 0")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--start", "2026-07-01T06:00Z"), "give --every SECONDS too"),
        (("--every", "60", "--start", "soon"), "a time is"),
        (("--every", "0"), "a round takes more than 0 seconds"),
        (("--every", "1", "--listen", "2"), "more than agents listen"),
        (("--read", "'"), "cannot be read"),
        (("--ca", "/nowhere"), "is no file"),
        (("--username", "0", "--password-file", "/"), "is no file"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(words, text, tmp_path):
    base = ["agent", "bandit-quick", "0", "--mqtt", "127.0.0.1:1", "--session", "july", "--folder", str(tmp_path / "x")]
    stream = io.StringIO()
    with contextlib.redirect_stderr(stream):
        assert main([*base, *words]) == 2
    assert text in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_a_program_that_fails_is_told_of_each_time_and_ends_the_device_but_not_the_episode(tmp_path, monkeypatch):
    monkeypatch.setattr("icmape_agent.mqtt.device.PAUSE", 0.01)
    monkeypatch.setattr("icmape_agent.mqtt.device.JOIN", 0.1)
    reader, stream = Command("false"), io.StringIO()
    assert reader.read(Request(0, 3, 1, "arm 2", lambda: False)) is None
    assert reader.told == "false ended with 1"
    words = ["agent", "bandit-quick", "0", "--mqtt", "127.0.0.1:1", "--session", "july", "--folder", str(tmp_path)]
    with contextlib.redirect_stderr(stream):
        assert main([*words, "--read", "false"]) == 2
    assert "false ended with 1): mend the sensor" in stream.getvalue()
    entries = [line.entry["type"] for line in journal.read(tmp_path / journal.NAME).lines]
    assert entries == ["session", "missed", "missed"]


def test_a_program_that_may_not_be_run_is_named_before_anything_is_recorded(tmp_path):
    sensor, stream = tmp_path / "sensor", io.StringIO()
    sensor.write_text("#!/bin/sh\necho 1\n")
    words = ["agent", "bandit-quick", "0", "--mqtt", "127.0.0.1:1", "--session", "july", "--read", str(sensor)]
    with contextlib.redirect_stderr(stream):
        assert main([*words, "--folder", str(tmp_path / "x")]) == 2
    assert "may not be run" in stream.getvalue()
    assert len(journal.read(tmp_path / "x" / journal.NAME).lines) == 1


def test_a_device_imports_no_jax_and_says_what_is_missing(tmp_path):
    code = (
        "import sys; sys.modules['paho'] = None; from icmape_agent.command import main;"
        "code = main(['agent', 'bandit-quick', '0', '--mqtt', 'h', '--session', 'a', '--folder', sys.argv[1]]);"
        "print(code, 'jax' in sys.modules, 'icmape' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "x")], capture_output=True, text=True)
    assert done.stdout.split() == ["2", "False", "False"], done.stderr
    assert "pip install 'icmape-agent[mqtt]'" in done.stderr


def test_the_command_of_icmape_is_the_same(tmp_path, capsys):
    words = ["agent", "bandit-quick", "7", "--mqtt", "127.0.0.1:1", "--session", "july", "--folder", str(tmp_path)]
    assert icmape(words) == 2
    assert "agents are numbered 0..2; given 7" in capsys.readouterr().err
    assert icmape(["coordinate", str(tmp_path), "--mqtt", "h", "--session", "a"]) == 2
    assert "name the team" in capsys.readouterr().err
