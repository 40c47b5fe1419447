"""An evaluation in a file may come from anywhere: what is wrong in it is named, and nothing is guessed."""

import json
from typing import Any

import pytest

from icmape import UserError
from icmape.evaluation.sources import read_source

OWN = {
    "team": "team-1",
    "problem": {"kind": "bandit", "arguments": {"arms": 2, "players": 3, "horizon": 20}},
    **{"accuracy": 0.91, "accuracy_low": 0.9, "accuracy_high": 0.92, "tau": 5.8, "tau_error": 0.02, "rounds": 4.8},
    **{"readings": 14.4, "forced": 0.0, "ece": 0.01, "confidence": 0.9, "log_loss": 0.3, "no_data_accuracy": 0.1},
    **{"exact": "exact", "exact_accuracy": 0.92, "exact_ece": 0.01, "exact_log_loss": 0.3, "episodes": 1000},
    **{"seed": 0, "delta": 0.1, "provenance": {"seconds": 3.0, "environment_steps": 100}},
}
MISSING = object()


def read(tmp_path, content: Any):
    path = tmp_path / "file.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_source(str(path))


def test_a_whole_file_is_read(tmp_path):
    (member,) = read(tmp_path, OWN).members
    assert (member.evaluation.accuracy, member.evaluation.episodes, member.seconds) == (0.91, 1000, 3.0)
    endless = read(tmp_path, {**OWN, "log_loss": float("inf")})  # a true answer had probability 0
    assert endless.members[0].evaluation.log_loss == float("inf")


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("accuracy", 1.5, "accuracy must be a number from 0 to 1; given 1.5"),
        ("accuracy", float("nan"), "accuracy must be a number from 0 to 1; given nan"),
        ("accuracy", [0.9], r"accuracy must be a number from 0 to 1; given \[0.9\]"),
        ("accuracy", "0.9", "accuracy must be a number from 0 to 1; given '0.9'"),
        ("accuracy", None, "accuracy must be"),
        ("accuracy", True, "accuracy must be"),
        ("accuracy", 0.5, "accuracy is 0.5, outside its own interval"),
        ("accuracy", MISSING, "accuracy missing"),
        ("tau", -1, "tau must be a number of at least 1; given -1"),
        ("tau", 10**400, "tau must be a number of at least 1"),
        ("log_loss", float("nan"), "log_loss must be"),
        ("episodes", 10.5, "episodes must be a whole number"),
        ("episodes", 0, "episodes must be"),
        ("delta", 0, "delta must lie strictly between 0 and 1"),
        ("exact", ["exact"], "exact must be one of"),
        ("exact_accuracy", 2, "exact_accuracy must be"),
        ("team", ["a"], "team must be a text"),
        ("problem", ["bandit"], "problem must be a description"),
        ("problem", {"kind": ["bandit"], "arguments": {}}, "problem must have a kind"),
        ("problem", {"kind": "band\x1b[2Jit", "arguments": {}}, "kind must be a problem's name"),
        ("problem", {"kind": "bandit", "arguments": []}, "problem must have a kind"),
        ("problem", {"kind": "bandit", "arguments": {"armz": 2}}, "did you mean arms"),
        ("problem", {"kind": "bandit", "arguments": {}, "centralized": "no"}, "centralized must be true or false"),
        ("provenance", [1], "provenance must hold values by name"),
        ("provenance", {"seconds": "long"}, "seconds must be a number"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, key, value, named):
    content = {**OWN, key: value}
    if value is MISSING:
        del content[key]
    with pytest.raises(UserError, match=named):
        read(tmp_path, content)


DEEP = "[" * 100_000 + "]" * 100_000


NOTHING = ["", "\0", "nul", DEEP, f'{{"name": {DEEP}}}', "1" * 6000, [], 3, None, {"teams": []}, {"teams": {}}]
NO_TEAMS = [{"teams": 3}, {"teams": {"a": 3}}, {"teams": {"a": OWN, "b": {}}}, {"name": ["theirs"]}, {"name": {}}]


@pytest.mark.parametrize("content", [*NOTHING, *NO_TEAMS], ids=range(len(NOTHING) + len(NO_TEAMS)))
def test_what_is_no_evaluation_is_refused(tmp_path, content):
    with pytest.raises(UserError, match=r"file\.json"):
        read(tmp_path, content)


def test_the_name_of_a_method_steers_no_terminal(tmp_path):
    foreign = {"name": "a\x1b[2J\u202eb\ud800", "problem": "bandit-quick", "accuracy": 0.9, "tau": 5, "episodes": 10}
    assert read(tmp_path, foreign).name == r"a\x1b[2J\u202eb\ud800"
