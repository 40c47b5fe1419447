"""Agents of a session: their own data only, what they observe first, and what they may do."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.session_team import Coins, toss
from icmape_agent.errors import UserError
from icmape_agent.ranges import Part, Range
from icmape_agent.readings import Gate, Sizes
from icmape_agent.session import Crew, Session, open_session
from tests.session.support import lines, opened, tell


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


def test_without_an_observation_before_round_0_there_is_no_answer_and_the_table_says_why(tmp_path):
    """Nothing stands for it: the reason names the agents that owe it, and the answer comes with it."""
    with walking(tmp_path) as session:
        session.first(0, 2)
        session.tell(0, 1, 3)
        session.stop()
        refused = session.handle({"type": "answer"})["error"]
        assert refused["kind"] == "early"
        assert refused["text"].startswith("agent 1 never told the observation before round 0")
        shown = session.show().splitlines()
        assert shown[1:4] == ["round  agent 0    agent 1", "first  2          -", "0      right → 3  -"]
        assert shown[-1] == f"no answer: {refused['text']}"
        session.first(1, 4)
        assert session.handle({"type": "answer"})["decision"] == [2, 4]
        assert session.show().splitlines()[-1].startswith("answer: ")
    with walking(tmp_path / "nobody") as session:
        session.stop()
        assert session.handle({"type": "answer"})["error"]["text"].startswith("agents 0, 1 never told")


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
