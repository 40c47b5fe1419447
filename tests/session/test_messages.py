"""Messages of a session: what is the same, what is a conflict, what is refused, and their order."""

import json

import pytest

from tests.session.support import lines, opened, tell


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
