"""`icmape session`: the same session by commands and by lines of JSON."""

import io
import json
import sys

import jax.numpy as jnp
import pytest

import icmape_agent
from icmape.cli import main
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.play.team_files import load
from icmape_agent.session import journal
from tests.support import small_bandit


@pytest.fixture(scope="module")
def team(tmp_path_factory) -> str:
    """It pulls arm 1 twice and stops."""
    path = tmp_path_factory.mktemp("team") / "team.safetensors"
    schedule = Schedule(jnp.array([[0, 0, 0], [1, 1, 1]], jnp.int32), 3)
    Team(small_bandit(), schedule, FixedLength(2), ExactInference()).save(path)
    return str(path)


@pytest.fixture
def run(tmp_path, capsys):
    """Run a command on a folder: exit code, output, error."""

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["session", str(tmp_path / "s"), *words])
        return code, *capsys.readouterr()

    return run


def test_a_session_by_commands(run, team, tmp_path, capsys):
    assert run("ask", "0")[0] == 2
    assert "holds no session: start one with" in run("ask", "0")[2] + capsys.readouterr().err
    assert run("start")[2].startswith("error: name the team: --team")
    assert run("start", "--team", team)[1].endswith("not stopped, open rounds 0, 0, 0, counted from 0\n")
    assert run("start")[0] == 0  # it is there, and knows its team
    assert run("ask", "0")[1] == "agent 0, round 0, counted from 0: action 0 (arm 1)\n"
    for agent in "012":
        assert (
            run("tell", agent, "0", "1", "--round", "0", "--note", "rainy")[1]
            == f"agent {agent}, round 0, counted from 0: recorded\n"
        )
    assert run("tell", "0", "1", "1")[1] == "agent 0, round 1, counted from 0: recorded\n"  # its first open round
    assert run("missed", "1")[1] == "agent 1, round 1, counted from 0: recorded as missed\n"
    assert run("ask", "0")[1] == "agent 0, round 2, counted from 0: STOP\n"
    assert run("ask", "2")[1] == "agent 2, round 1, counted from 0: STOP\n"
    assert (
        run("tell", "2", "1", "0", "--round", "1")[1] == "agent 2, round 1, counted from 0: recorded, after the stop\n"
    )
    code, said, _ = run("answer", "--json")
    answer = json.loads(said)
    assert (code, answer["rounds"], answer["missing"]) == (0, [0], [[1, 1]])
    sure = f"{answer['name']} (p = {answer['confidence']:.3f})"
    assert answer["target"] == 0.9 > answer["confidence"]
    told = run("answer")[1].splitlines()
    assert told[0] == f"answer: {sure}, from 1 whole round and 1 in part; 1 reading missing"
    assert told[1].startswith("less sure than the target of 0.9 ")
    shown = run("show")[1]
    assert "arm 2 → 0 (late)" in shown
    assert shown.splitlines()[0].endswith("(agents and rounds count from 0, on pages from 1)")
    assert "note of agent 2 round 0: rainy" in shown
    assert main(["session", str(tmp_path), "list"]) == 0
    assert "stopped in round 2, counted from 0" in capsys.readouterr().out


def test_start_remembers_the_team_of_a_journal_that_does_not_say_it(run, team, tmp_path, capsys):
    """Such as one that a program began."""
    load(team).session(tmp_path / "s").close()
    assert run("ask", "0")[2].startswith("error: name the team: --team")
    before = (tmp_path / "s" / journal.NAME).read_bytes()
    assert run("start", "--team", team)[0] == 0
    assert run("ask", "0")[1] == "agent 0, round 0, counted from 0: action 0 (arm 1)\n"
    assert run("show")[0] == 0
    assert (tmp_path / "s" / journal.NAME).read_bytes() == before
    assert main(["session", str(tmp_path), "list"]) == 0
    assert team in capsys.readouterr().out


def test_another_team_is_not_remembered(run, team, tmp_path):
    icmape_agent.load("bandit-quick").session(tmp_path / "s").close()
    assert "was started with another team" in run("start", "--team", team)[2]
    assert run("ask", "0")[2].startswith("error: name the team: --team")


def test_errors_are_one_sentence_and_exit_code_2(run, team):
    run("start", "--team", team)
    for words, named in (
        (("tell", "0", "1"), "tell needs AGENT ACTION READING behind it; given 0 1"),
        (("tell", "0", "1", "wet"), "reading must be JSON"),
        (("tell", "0", "1", "0.5"), "0 or 1; given 0.5"),
        (("ask", "9"), "agents are numbered 0..2; given 9"),
        (("tell", "9", "0", "1"), "agents are numbered 0..2; given 9"),
        (("answer",), "nobody has stopped yet"),
    ):
        code, said, error = run(*words)
        assert (code, said) == (2, "")
        assert error.startswith("error: ")
        assert named in error
    code, said, _ = run("ask", "9", "--json")
    assert (code, json.loads(said)["error"]["kind"]) == (2, "refused")


def test_a_line_of_json_in_and_one_out(run, team, tmp_path, monkeypatch):
    run("start", "--team", team)
    path = tmp_path / "s" / journal.NAME
    with open(path, "ab") as file:
        file.write(b'{"type":"tell","ag')  # a process was killed here
    messages = [
        {"type": "ask", "agent": 1},
        {"type": "tell", "agent": 1, "round": 0, "action": 0, "reading": 1, "id": "x"},
        {"type": "tell", "agent": 1, "round": 0, "action": 0, "reading": 0, "id": "y"},
    ]
    incoming = io.TextIOWrapper(io.BytesIO(b"\n".join(json.dumps(m).encode() for m in messages)))
    outgoing = io.TextIOWrapper(io.BytesIO())
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", incoming)
        patch.setattr(sys, "stdout", outgoing)
        assert main(["session", str(path.parent), "serve-stdio"]) == 0
    replies = [json.loads(line) for line in outgoing.buffer.getvalue().splitlines()]
    assert [reply["ok"] for reply in replies] == [True, True, False]
    assert replies[0]["action"] == 0
    assert replies[2]["error"]["kind"] == "conflict"
    assert journal.read(path).torn == 0
