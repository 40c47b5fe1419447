"""Misses, stops, and what counts in the answer."""

from dataclasses import dataclass, field
from typing import Any

from benchmarks.session_team import Coins, crew
from icmape_agent.session import STOP, Crew, journal, open_session
from icmape_agent.session.table import conclusion
from tests.session.support import COINS, lines, opened


def test_a_round_that_is_missed_is_over_and_a_later_reading_of_it_counts(tmp_path):
    with opened(tmp_path / "missed") as session:
        session.missed(0)
        session.tell(0, 1, 1)  # of round 1
        assert session.handle({"type": "status", "agent": 0})["round"] == 2
        without = session.ask(0)
        session.tell(0, 2, 0, round=0)
        corrected = session.ask(0)
    with opened(tmp_path / "missed") as session:  # after a restart the same
        assert session.ask(0) == corrected
    with opened(tmp_path / "never missed") as session:
        session.tell(0, 2, 0)
        session.tell(0, 1, 1)
        assert session.ask(0) == corrected
    with opened(tmp_path / "one round") as session:  # these agents know no misses: they play such a round again
        session.tell(0, 1, 1)
        assert session.ask(0) == without


def test_a_miss_after_the_reading_changes_nothing(session):
    session.tell(0, 1, 1)
    before = lines(session)
    reply = session.handle({"type": "missed", "agent": 0, "round": 0})
    assert reply == {"ok": True, "type": "missed", "agent": 0, "round": 0, "recorded": False}
    assert lines(session) == before
    missed = {"type": "missed", "agent": 0, "round": 1, "id": "m"}
    first = session.handle(missed)
    session.tell(0, 1, 1, round=1)
    assert session.handle(missed) == first  # the repeated message has the reply that it had


@dataclass
class Noting:
    """An agent that knows misses."""

    seen: list[Any] = field(default_factory=list)

    def act(self) -> int:
        return self.seen.count("missed")

    def see(self, action: int, observation: Any) -> None:
        self.seen.append((action, observation))

    def missed(self, action: int | None = None) -> None:
        self.seen.append("missed")


class NotingTeam:
    """A team that takes misses."""

    def __init__(self) -> None:
        self.given: list[Any] = []
        self.agents = [Noting(), Noting(), Noting()]

    def agent(self, index: int, first: Any = None) -> Noting:
        return self.agents[index]

    def posterior(self, actions: Any, observations: Any, first: Any = None) -> Any:
        self.given = [actions, observations]
        return type("Answer", (), {"decision": len(observations), "name": "n", "confidence": 0.5})()


def test_a_team_that_knows_misses_is_told_of_them_and_what_is_there_of_a_round_counts(tmp_path):
    team = NotingTeam()
    noting = Crew(team, crew(COINS).gate, "noting", {"kind": "noting"}, str, takes_missing=True, interact=False)
    with open_session(noting, tmp_path) as session:
        session.missed(0, action=3)
        session.tell(0, 1, 1)
        session.missed(0)
        session.tell(1, 2, 0)
        assert session.ask(0) == 2
        assert session.ask(1) == 0
        session.stop(round=2)
        answer = session.handle({"type": "answer"})
        assert (answer["rounds"], answer["partial"]) == ([], [0, 1])
        assert team.given == [[[3, 2, None], [1, None, None]], [[None, 0, None], [1, None, None]]]
        session.tell(2, 0, 1, round=1)
        answer = session.handle({"type": "answer"})
        assert (answer["rounds"], answer["partial"], answer["missing"]) == ([], [0, 1], [[0, 0], [2, 0], [1, 1]])
        assert conclusion(answer) == "answer: n (p = 0.500), from 0 whole rounds and 2 in part; 3 readings missing"
        assert team.given == [[[3, 2, None], [1, None, 0]], [[None, 0, None], [1, None, 1]]]
        session.tell(1, 0, 1, round=1)
        shown = session.show().splitlines()[-1]
        assert shown.endswith("from 1 whole round and 1 in part; 2 readings missing")


def test_the_stop_is_in_the_journal_before_anyone_hears_of_it_and_ends_it_for_all(tmp_path):
    coins = Coins(agents=3, horizon=12, lead=1)
    with opened(tmp_path, coins) as session:
        for agent in range(3):
            session.tell(agent, 1, int(agent == 1))
        assert session.ask(0) != STOP
        reply = session.handle({"type": "ask", "agent": 1})
        assert (reply["stop"], reply["action"], reply["round"]) == (True, None, 1)
        assert journal.read(tmp_path / journal.NAME).lines[-1].entry["type"] == "stop"
        assert session.ask(0) == session.ask(2) == STOP
        assert lines(session) == 5  # one stop
    with opened(tmp_path, coins) as session:
        assert session.stopped
        assert session.ask(0) == STOP


def test_a_stop_that_cannot_be_written_is_not_given(tmp_path, monkeypatch):
    with opened(tmp_path, Coins(agents=3, horizon=12, lead=1)) as session:
        session.tell(0, 1, 1)
        with monkeypatch.context() as patch:
            patch.setattr("os.pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            assert session.handle({"type": "ask", "agent": 0})["error"]["kind"] == "storage"
        assert not session.stopped
        assert session.ask(1) != STOP
        assert session.ask(0) == STOP


def test_readings_of_rounds_before_the_stop_count_whenever_they_come_and_later_ones_never(session):
    for agent in (0, 1):
        for number in range(3):
            session.tell(agent, 1, 1, round=number)
    session.stop(agent=0, round=2)
    assert session.handle({"type": "answer"})["missing"] == [[2, 0], [2, 1]]
    assert session.tell(2, 3, 0, round=0)  # late
    assert session.tell(2, 3, 0, round=1)
    answer = session.handle({"type": "answer"})
    assert (answer["rounds"], answer["missing"]) == ([0, 1], [])
    session.tell(2, 3, 0, round=2)  # kept, not counted
    assert session.handle({"type": "answer"}) == answer
    assert "(late, not counted)" in session.show()


def test_the_earliest_stop_counts_whichever_comes_first(tmp_path):
    answers = []
    for order in ((0, 2), (2, 0)):
        with opened(tmp_path / str(order)) as session:
            for agent in range(3):
                for number in range(5):
                    session.tell(agent, agent, 1, round=number)
            for agent in order:
                session.stop(agent=agent, round=3 + agent // 2)
            answers.append(session.handle({"type": "answer"}))
    assert answers[0] == answers[1]
    assert answers[0]["rounds"] == [0, 1, 2]


def test_a_stop_of_an_agent_is_one_stop(session):
    first = session.handle({"type": "stop", "agent": 1, "round": 3, "id": "s"})
    assert session.handle({"type": "stop", "agent": 1, "round": 3, "id": "s"}) == first
    assert session.handle({"type": "stop", "agent": 1})["round"] == 3
    assert session.handle({"type": "stop", "agent": 1, "round": 4})["error"]["kind"] == "conflict"
    assert lines(session) == 2


def test_a_person_stops_after_the_last_round_that_anyone_played(session):
    session.tell(0, 1, 1)
    session.tell(0, 1, 1)
    session.tell(1, 1, 1)
    assert session.handle({"type": "stop"})["round"] == 2
    assert session.handle({"type": "stop"})["round"] == 2
    assert session.answer().decision == 0  # no round of all agents: the answer without data
    assert session.handle({"type": "answer"})["missing"] == [[2, 0], [1, 1], [2, 1]]


def test_stop_is_forced_in_the_last_round_also_of_agents_that_missed_everything(session):
    for _ in range(11):
        assert session.ask(0) != STOP
        session.missed(0)
    assert session.ask(0) == STOP
    assert session.handle({"type": "status", "agent": 1}) == {
        **{"ok": True, "type": "status", "session": session.header["session"]},
        **{"stopped": True, "agent": 1, "round": 0, "waiting": []},
    }


def test_the_answer_waits_for_the_stop(session):
    session.tell(0, 1, 1)
    assert session.handle({"type": "answer"})["error"]["kind"] == "early"
    assert session.handle({"type": "answer", "early": True})["stopped"] is False


def test_an_incomplete_round_is_left_out_of_the_answer_and_the_others_count(session):
    expected = COINS.posterior([[3, 3, 3]] * 2, [[1, 1, 1]] * 2)
    for number in range(3):
        for agent in range(3):
            if (agent, number) == (1, 1):
                session.missed(1)
            else:
                session.tell(agent, 3, 1, round=number)
    session.stop()
    answer = session.handle({"type": "answer"})
    assert (answer["rounds"], answer["missing"]) == ([0, 2], [[1, 1]])
    assert (answer["decision"], answer["confidence"]) == (expected.decision, expected.confidence)
