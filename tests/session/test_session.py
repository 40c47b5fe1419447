"""Sessions go on after a restart, and show people what was done."""

from typing import Any

import numpy as np
import pytest

from benchmarks.session_team import Coins, crew, toss
from icmape_agent.errors import UserError
from icmape_agent.session import STOP, Crew, Refusal, journal, open_session
from tests.session.support import COINS, opened


def test_a_session_goes_on_after_a_restart_as_if_nothing_had_been(tmp_path):
    """Closed and opened again before every message: the same actions and the same answer."""
    coins, through, restarted = Coins(agents=3, horizon=12, lead=4), [], []
    with opened(tmp_path / "through", coins) as session:
        while not session.stopped:
            for agent in range(3):
                action = session.ask(agent)
                through.append(action)
                if action == STOP:
                    break
                session.tell(agent, action, toss(1, agent, len(session.records.agents[agent].readings), action))
        answer = session.handle({"type": "answer"})
    for agent in [agent for _ in range(12) for agent in range(3)][: len(through)]:
        with opened(tmp_path / "restarted", coins) as session:
            restarted.append(session.ask(agent))
        if restarted[-1] != STOP:
            with opened(tmp_path / "restarted", coins) as session:
                number = session.records.agents[agent].open_round
                session.tell(agent, restarted[-1], toss(1, agent, number, restarted[-1]))
    assert restarted == through
    with opened(tmp_path / "restarted", coins) as session:
        assert session.handle({"type": "answer"}) == answer


def test_notes_and_times_are_for_people_only(tmp_path):
    seen = []

    class Watched:
        def act(self) -> int:
            return 0

        def see(self, action: int, observation: Any) -> None:
            seen.append((action, observation))

    team = type("Team", (), {"agent": lambda self, index, first: Watched(), "posterior": None})()
    with open_session(Crew(team, crew(COINS).gate, "w", {"kind": "w"}, str), tmp_path, note="July") as session:
        session.tell(0, 2, 1, note="Ana, at the \x1b[31mweir", time="12:30")
        session.ask(0)
        assert seen == [(2, 1)]
        text = session.show()
        assert "note: July" in text
        assert "note of agent 0 round 0: Ana, at the \\x1b[31mweir" in text
        assert "\x1b" not in text


def test_the_table_shows_what_was_done_and_seen(session):
    session.tell(0, 3, 1)
    session.missed(1)
    session.tell(2, 0, 0, round=1)
    assert session.show().splitlines()[1:] == [
        "round  agent 0     agent 1  agent 2",
        "0      coin 4 → 1  missed   -",
        "1      -           -        coin 1 → 0",
        "not stopped; agents are in rounds 1, 1, 0",
    ]
    session.stop()
    assert session.show().splitlines()[-2:] == [
        "stopped by a person in round 1",
        "answer: coin 1 (p = 0.250), from 0 rounds of all agents; 2 readings missing",
    ]


def test_a_table_of_data_that_no_answer_explains_says_so(tmp_path):
    class Baffled(Coins):
        def posterior(self, actions: Any, observations: Any, first: Any = None) -> Any:
            raise UserError("no answer explains all of it")

    with opened(tmp_path, Baffled(agents=3, horizon=12)) as session:
        session.tell(0, 3, 1)
        session.stop()
        assert session.show().splitlines()[-1] == "no answer: no answer explains all of it"


def test_python_values_are_written_as_json(session):
    session.tell(np.int64(0).item(), np.int64(3), np.float32(1))
    assert journal.read(session.folder / journal.NAME).lines[-1].entry["reading"] == 1
    with pytest.raises(Refusal, match="agents are numbered"):
        session.tell(7, 0, 1)
    with pytest.raises(UserError, match="made of numbers"):
        session.tell(0, 0, object())
