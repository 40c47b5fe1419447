"""Messages, replies and entries fit the schema, and what does not fit is refused without harm."""

import copy
import io
import json
import random
from typing import Any

import jsonschema
import pytest

from benchmarks.session_team import Coins, crew
from icmape_agent.session import KINDS, SCHEMA_FILE, handle_text, journal, open_session, serve
from icmape_agent.session.schema import misfit, schema
from icmape_agent.session.stdio import MOST_BYTES

TEAM = crew(Coins(agents=2, horizon=8, lead=3))
MESSAGES: list[dict[str, Any]] = [
    {"type": "ask", "agent": 0, "round": 0, "id": "q"},
    {"type": "tell", "agent": 0, "round": 0, "action": 1, "reading": 1, "id": "a", "note": "n", "time": "t"},
    {"type": "first", "agent": 0, "reading": [1, {"x": 0.5}]},
    {"type": "missed", "agent": 1, "round": 0},
    {"type": "stop", "agent": 1, "round": 3},
    {"type": "stop"},
    {"type": "status"},
    {"type": "status", "agent": 1, "id": "s"},
    {"type": "answer", "early": True},
    {"type": "show"},
]
ODD = [None, True, -1, 0, 1, 2.5, 10**20, "", "a", "x" * 3000, [], [[1]], {}, {"type": "tell"}, "ask", "\ud800", 1e308]


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema()["$defs"]})


REPLY, ENTRY, MESSAGE = validator("reply"), validator("entry"), validator("message")


def mutated(message: Any, chance: random.Random) -> Any:
    """A message with a part removed, added or replaced."""
    changed = copy.deepcopy(message)
    for _ in range(chance.randint(1, 2)):
        name = chance.choice([*changed, "round", "agent", "more"])
        if chance.random() < 0.3:
            changed.pop(name, None)
        else:
            changed[name] = chance.choice(ODD)
    return changed


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA_FILE.read_text()))
    assert set(schema()["$defs"]["error"]["properties"]["error"]["properties"]["kind"]["enum"]) == set(KINDS)


def test_our_reading_of_the_schema_is_that_of_jsonschema():
    chance = random.Random(0)
    judged = []
    for _ in range(700):
        message = mutated(chance.choice(MESSAGES), chance)
        ours = misfit(message, {"$ref": "#/$defs/message"}, "it") is None
        assert ours == MESSAGE.is_valid(message), message
        judged.append(ours)
    assert 50 < sum(judged) < 650  # of both kinds


def test_no_message_does_harm_and_all_replies_and_entries_fit_the_schema(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda file: None)
    chance, kinds = random.Random(1), set()
    with open_session(TEAM, tmp_path) as session:
        for number in range(700):
            message = mutated(chance.choice(MESSAGES[:4] if number < 500 else MESSAGES), chance)
            reply = session.handle(message, chance.choice([None, None, 0, 1]))
            REPLY.validate(reply)
            kinds.add(reply["error"]["kind"] if not reply["ok"] else reply["type"])
            json.dumps(reply, allow_nan=False)
        assert {"malformed", "refused", "conflict", "forbidden", "tell", "missed", "stop", "ask"} <= kinds
        shown = session.show()
    for line in journal.read(tmp_path / journal.NAME).lines:
        ENTRY.validate(line.entry)
    with open_session(TEAM, tmp_path) as session:
        assert session.show() == shown


@pytest.mark.parametrize("message", [*ODD, {"type": 1}, {"type": "sing"}, {1: 2, "type": "ask"}, float("nan"), {"x"}])
def test_what_is_no_message_has_a_reply_of_one_sentence(message, tmp_path):
    with open_session(TEAM, tmp_path) as session:
        reply = session.handle(message)
        REPLY.validate(reply)
        assert reply["error"]["kind"] == "malformed"
        assert "\n" not in reply["error"]["text"]


def test_deep_nesting_and_numbers_that_json_cannot_hold_are_malformed(tmp_path):
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with open_session(TEAM, tmp_path) as session:
        for reading in (deep, float("inf"), 10**400, "1", {"a": float("nan")}, object()):
            message = {"type": "tell", "agent": 0, "round": 0, "action": 0, "reading": reading}
            assert session.handle(message)["error"]["kind"] == "malformed"


def test_lines_in_and_lines_out(tmp_path):
    told = {"type": "tell", "agent": 0, "round": 0, "action": 1, "reading": 1, "id": "ü"}
    lines = [
        b"",
        json.dumps(told).encode(),
        b"  ",
        b'{"type": "ask", "agent": 0',
        b'{"type": "tell", "agent": 0, "round": 1, "action": 1, "reading": NaN}',
        b'{"type": "ask", "agent": 0, "agent": 1}',
        b"[" * 100_000,
        b"\xff\xfe",
        b"1" * 10_000,
        b'{"type": "tell", "note": "' + b"x" * (2 * MOST_BYTES) + b'"}',
        json.dumps(told).encode(),
        b'{"type": "ask", "agent": 1}',  # without an end
    ]
    out = io.BytesIO()
    with open_session(TEAM, tmp_path) as session:
        serve(session, io.BytesIO(b"\n".join(lines)), out)
        replies = [json.loads(line) for line in out.getvalue().splitlines()]
        assert handle_text(session, json.dumps(told), sender=1)["error"]["kind"] == "forbidden"
    for reply in replies:
        REPLY.validate(reply)
    assert [reply["ok"] for reply in replies] == [True, *[False] * 7, True, True]
    assert {reply["error"]["kind"] for reply in replies if not reply["ok"]} == {"malformed"}
    assert replies[0] == replies[-2]
    assert replies[0]["id"] == "ü"
