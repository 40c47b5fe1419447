"""The rules of a session: what counts, what is the same, what is refused."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.session_team import Coins, crew, toss
from icmape_agent.errors import UserError
from icmape_agent.ranges import Part, Range
from icmape_agent.readings import Gate, Sizes
from icmape_agent.session import STOP, Crew, Refusal, Session, journal, open_session

COINS = Coins(agents=3, horizon=12, lead=3)


def opened(folder: Path, coins: Coins = COINS, **options) -> Session:
    return open_session(crew(coins), folder, **options)


@pytest.fixture
def session(tmp_path) -> Session:
    with opened(tmp_path) as session:
        yield session


def tell(agent=0, number=0, action=1, reading=1, **more) -> dict[str, Any]:
    return {"type": "tell", "agent": agent, "round": number, "action": action, "reading": reading, **more}


def lines(session: Session) -> int:
    return len(journal.read(session.folder / journal.NAME).lines)


# -- the same message, other messages


def test_a_repeated_tell_is_the_same_tell(session):
    message = tell(id="a", note="first", time="noon")
    reply = session.handle(message)
    assert reply == {"ok": True, "type": "tell", "id": "a", "agent": 0, "round": 0, "late": False}
    session.stop()
    count = lines(session)
    # after the stop, with another note, without its id, as a float: still the tell that came before the stop
    assert session.handle(message) == reply
    assert session.handle(tell(id="a", note="again", reading=1.0)) == reply
    assert session.handle(tell())["late"] is False
    assert lines(session) == count


@pytest.mark.parametrize("changed", [{"action": 2}, {"reading": 0}, {"action": 2, "reading": 0, "id": "b"}])
def test_another_content_for_a_round_is_a_conflict_that_names_both(session, changed):
    session.handle(tell(id="a"))
    count = lines(session)
    error = session.handle(tell(**{"id": "a", **changed}))["error"]
    assert error["kind"] == "conflict"
    assert error["recorded"] == tell()
    assert error["given"] == tell(**{name: value for name, value in changed.items() if name != "id"})
    assert json.dumps(error["recorded"]) in error["text"]
    assert json.dumps(error["given"]) in error["text"]
    assert lines(session) == count


def test_an_id_names_one_message_of_an_agent(session):
    session.handle(tell(id="a"))
    assert session.handle(tell(number=1, id="a"))["error"]["kind"] == "conflict"
    assert session.handle({"type": "missed", "agent": 0, "round": 1, "id": "a"})["error"]["kind"] == "conflict"
    assert session.handle(tell(agent=1, id="a"))["ok"]  # another agent numbers its own messages


def test_a_message_for_another_session_is_refused(session):
    own = session.header["session"]
    assert session.handle(tell(session=own))["ok"]
    error = session.handle(tell(number=1, session="0"))["error"]
    assert (error["kind"], own in error["text"]) == ("conflict", True)


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (tell(reading=2), "0 or 1; given 2"),
        (tell(reading=0.5), "0 or 1; given 0.5"),
        (tell(reading=True), "given True"),
        (tell(reading=[1]), "of shape (1,)"),
        (tell(reading={"a": 1}), "expected int8"),
        (tell(action=4), "actions are numbered 0..3; given 4"),
        (tell(agent=3), "agents are numbered 0..2; given 3"),
        (tell(number=11), "rounds with readings are 0..10 in this problem; given 11"),
        ({"type": "ask", "agent": 3}, "agents are numbered 0..2"),
        ({"type": "stop", "round": 12}, "rounds with a stop are 0..11"),
        ({"type": "first", "agent": 0, "reading": 1}, "nothing is observed before round 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence_and_not_recorded(session, message, named):
    reply = session.handle(message)
    assert reply["error"]["kind"] == "refused"
    assert named in reply["error"]["text"]
    assert lines(session) == 1
    assert session.handle({"type": "ask", "agent": 0})["ok"]


# -- order


def test_readings_may_come_in_any_order_and_wait_for_those_before_them(tmp_path):
    with opened(tmp_path / "in order") as session:
        for number in range(4):
            session.tell(0, number % 2, number // 2)
        expected = session.ask(0)
    with opened(tmp_path / "mixed") as session:
        for number in (2, 0, 3):
            session.tell(0, number % 2, number // 2, round=number)
        state = session.handle({"type": "status", "agent": 0})
        assert (state["round"], state["waiting"]) == (1, [2, 3])
        asked = session.handle({"type": "ask", "agent": 0})
        assert asked["round"] == 1  # the next action rests on round 0 only
        session.tell(0, 1, 0)  # the first open round is 1
        assert session.ask(0) == expected
        assert session.handle({"type": "status", "agent": 0})["waiting"] == []


def test_asking_for_a_round_that_is_over_says_where_the_agent_is(session):
    session.tell(0, 1, 1)
    error = session.handle({"type": "ask", "agent": 0, "round": 0})["error"]
    assert (error["kind"], error["recorded"], error["given"]) == ("conflict", 1, 0)


def test_asking_writes_nothing_and_changes_nothing(session):
    session.tell(1, 1, 1)
    before = lines(session)
    replies = [session.handle({"type": "ask", "agent": 1}) for _ in range(3)]
    assert replies[0] == replies[1] == replies[2]
    assert lines(session) == before


# -- misses


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
    """A team that takes misses, unless every reading of agent 2 is one."""

    def __init__(self) -> None:
        self.given: list[Any] = []
        self.agents = [Noting(), Noting(), Noting()]

    def agent(self, index: int, first: Any = None) -> Noting:
        return self.agents[index]

    def posterior(self, actions: Any, observations: Any, first: Any = None) -> Any:
        if observations and all(row[2] is None for row in observations):
            raise UserError("too much is missing")
        self.given = [actions, observations]
        return type("Answer", (), {"decision": len(observations), "name": "n", "confidence": 0.5})()


def test_a_team_that_knows_misses_is_told_of_them_and_what_is_there_of_a_round_counts(tmp_path):
    team = NotingTeam()
    noting = Crew(team, crew(COINS).gate, "noting", {"kind": "noting"}, str, takes_missing=True)
    with open_session(noting, tmp_path) as session:
        session.missed(0, action=3)
        session.tell(0, 1, 1)
        session.missed(0)
        session.tell(1, 2, 0)
        assert session.ask(0) == 2
        assert session.ask(1) == 0
        session.stop(round=2)
        answer = session.handle({"type": "answer"})
        assert team.given == [[], []]  # it did not take what is there, so complete rounds count
        assert (answer["rounds"], answer["partial"]) == ([], [])
        session.tell(2, 0, 1, round=1)
        answer = session.handle({"type": "answer"})
        assert (answer["rounds"], answer["partial"], answer["missing"]) == ([], [0, 1], [[0, 0], [2, 0], [1, 1]])
        assert team.given == [[[3, 2, None], [1, None, 0]], [[None, 0, None], [1, None, 1]]]


# -- the stop


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


# -- own data only


def test_an_agents_replies_depend_on_its_own_entries_and_the_stop_bit_alone(tmp_path):
    """Whatever the others do, say or get wrong: to the last byte the same replies."""
    own = [tell(0, n, n % 4, toss(0, 0, n, n % 4), id=f"i{n}") for n in range(5)]
    own += [tell(0, 2, 3, 0), {"type": "status", "agent": 0}, {"type": "missed", "agent": 0, "round": 7}]
    own = [message for pair in zip(own, [{"type": "ask", "agent": 0}] * len(own), strict=True) for message in pair]
    with opened(tmp_path / "alone", Coins(agents=3, horizon=12, lead=9), note="n") as alone:
        expected = [alone.handle(message, 0) for message in own]
    with opened(tmp_path / "others", Coins(agents=3, horizon=12, lead=9)) as session:
        replies = []
        for place, message in enumerate(own):
            session.handle(tell(1 + place % 2, place // 2, 0, place % 2, id=f"i{place % 3}"))
            session.handle({"type": "ask", "agent": 2})
            session.handle({"type": "missed", "agent": 2, "round": 9})
            replies.append(session.handle(message, 0))
        assert not session.stopped
    for reply in (*expected, *replies):
        reply.pop("session", None)
    assert replies == expected


@pytest.mark.parametrize(
    "message",
    [
        {"type": "ask", "agent": 1},
        tell(1),
        {"type": "status"},
        {"type": "stop"},
        {"type": "answer", "early": True},
        {"type": "show"},
        {"type": "status", "agent": 1},
    ],
)
def test_a_sender_speaks_for_itself_and_sees_nothing_of_the_others(session, message):
    reply = session.handle(message, sender=0)
    assert reply["error"]["kind"] == "forbidden"
    assert lines(session) == 1
    assert session.handle(message)["ok"]


# -- observations before round 0, and actions that are not allowed


class Walker:
    """It starts somewhere on a line of five places, and may step left (0) or right (1) within it."""

    def __init__(self, first: Any):
        self.place = int(first)

    def act(self) -> int:
        return 0 if self.place == 4 else 1

    def see(self, action: int, observation: Any) -> None:
        if not 0 <= self.place + (1 if action else -1) <= 4:
            raise UserError(f"action {action} was not allowed at place {self.place}")
        self.place = int(observation)


class Walkers:
    def agent(self, index: int, first: Any = None) -> Walker:
        return Walker(first)

    def posterior(self, actions: Any, observations: Any, first: Any = None) -> Any:
        decision = [int(place) for place in (observations[-1] if observations else first)]
        return type("Answer", (), {"decision": np.array(decision), "name": str(decision), "confidence": 1.0})()


def walking(folder: Path, **options) -> Session:
    limits = np.zeros(2, int), np.full(2, 4), np.ones(2, bool)
    gate = Gate("Walkers", Sizes(2, 2, 9), [Part("", (), np.dtype(np.int8), Range(*limits))], 0, True)
    walkers = Crew(Walkers(), gate, "walkers", {"kind": "walkers"}, ["left", "right"].__getitem__)
    return open_session(walkers, folder, **options)


def test_an_agent_that_observes_something_before_round_0_waits_for_it(tmp_path):
    with walking(tmp_path) as session:
        assert session.handle({"type": "ask", "agent": 0})["error"]["kind"] == "early"
        session.tell(0, 1, 3, round=0)  # its readings may come before it
        session.first(0, 2, note="by the bridge")
        session.first(0, 2)
        assert session.handle({"type": "first", "agent": 0, "reading": 3})["error"]["kind"] == "conflict"
        assert session.handle({"type": "first", "agent": 1, "reading": 5})["error"]["kind"] == "refused"
        assert session.ask(0) == 1
        assert session.handle({"type": "answer", "early": True})["error"]["kind"] == "early"
        session.first(1, np.int8(4))
        assert session.ask(1) == 0
    with walking(tmp_path, first=[2, 4]) as session:  # given again: the same
        assert session.ask(0) == 1
        session.tell(1, 0, 3)
        session.stop()
        assert session.handle({"type": "answer"})["decision"] == [3, 3]
        assert "first  2" in session.show()


def test_an_action_that_is_not_allowed_is_refused_and_one_that_turns_out_so_counts_as_missed(tmp_path):
    with walking(tmp_path, first=[4, 0]) as session:
        error = session.handle(tell(0, 0, 1, 3))["error"]
        assert (error["kind"], error["text"]) == ("refused", "action 1 was not allowed at place 4")
        session.tell(0, 0, 3)
        session.tell(0, 1, 4, round=2)  # nobody can know yet whether it was allowed
        session.tell(0, 1, 4, round=1)  # it was not
        assert session.ask(0) == 0
        for place in (1, 2, 3):
            session.tell(1, 1, place)
        session.stop()
        answer = session.handle({"type": "answer"})
        assert (answer["rounds"], answer["missing"]) == ([0, 1], [[0, 2]])
        assert answer["decision"] == [4, 2]
    with walking(tmp_path) as session:
        assert session.handle({"type": "answer"}) == answer


# -- restarts, and people


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

    class Watched(Noting):
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


def test_python_values_are_written_as_json(session):
    session.tell(np.int64(0).item(), np.int64(3), np.float32(1))
    assert journal.read(session.folder / journal.NAME).lines[-1].entry["reading"] == 1
    with pytest.raises(Refusal, match="agents are numbered"):
        session.tell(7, 0, 1)
    with pytest.raises(UserError, match="made of numbers"):
        session.tell(0, 0, object())
