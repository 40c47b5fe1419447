"""Results that others computed: what is wrong is named, what is right stands in table and picture."""

import json
from pathlib import Path

import numpy as np
import pytest

from icmape import UserError, cli
from icmape.evaluation.comparison import compare, plan
from icmape.evaluation.foreign import read_foreign
from icmape.evaluation.intervals import mean_interval, wilson_interval
from icmape.evaluation.methods import pairs
from icmape.plot.comparison_table import rows, write_comparison

THEIRS = {"name": "theirs", "problem": "bandit-quick", "accuracy": 0.905, "tau": 5.75, "episodes": 4000}


def written(folder: Path, name: str = "theirs", **changes: object) -> str:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**THEIRS, "name": name, **changes}))
    return str(path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"accuracy": "0.9"}, "accuracy must be a number from 0 to 1; given '0.9'"),
        ({"accuracy": True}, "accuracy must be a number from 0 to 1; given True"),
        ({"accuracy": 90.5}, "accuracy must be a number from 0 to 1; given 90.5"),
        ({"accuracy": float("nan")}, "accuracy must be a number from 0 to 1; given nan"),
        ({"tau": 0.5}, "tau must be a number of at least 1; given 0.5"),
        ({"tau": float("inf")}, "tau must be a number of at least 1; given inf"),
        ({"episodes": 0}, "episodes must be a number of at least 1; given 0"),
        ({"episodes": 10.5}, "episodes must be a whole number; given 10.5"),
        ({"delta": 1}, "delta must lie strictly between 0 and 1; given 1"),
        ({"seconds": -1}, "seconds must be a number of at least 0; given -1"),
        ({"name": ""}, "name must be a text; given ''"),
        ({"problem": "bandit-quik"}, "problem 'bandit-quik' is no preset: did you mean bandit-quick"),
        ({"problem": 3}, "problem must be a preset's name, module:Class or a description of one; given 3"),
        ({"acuracy": 0.9}, "unknown key 'acuracy': did you mean accuracy"),
        ({"worlds": 3}, "worlds must be a text"),
        ({"episodes": 2, "stop_times": [5]}, "stop_times must be a list of 2 values, one an episode; given 1"),
        ({"episodes": 2, "stop_times": [5, 0]}, "stop_times must hold rounds from 1 on; value 1 is 0"),
        ({"episodes": 2, "correct": [1, 0.5]}, r"correct must hold true and false \(or 1 and 0\); value 1 is 0.5"),
        ({"episodes": 2, "stop_times": [5, 5]}, "tau is 5.75, but the mean of stop_times is 5"),
        ({"episodes": 2, "correct": [1, 0]}, "accuracy is 0.905, but the mean of correct is 0.5"),
    ],
)
def test_what_is_wrong_is_named(changes, said):
    with pytest.raises(UserError, match=said):
        read_foreign({**THEIRS, **changes})


def test_what_is_missing_is_named(tmp_path):
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps({"name": "theirs", "tau": 3}))
    with pytest.raises(UserError, match=r"theirs\.json: problem, accuracy, episodes missing: expected are name"):
        plan([str(path)])


def test_numbers_stand_in_the_table_and_what_nobody_said_is_a_dash(tmp_path):
    found = compare(plan([written(tmp_path)], baselines=["none"]))
    (method,) = found.methods
    assert (method.mean("accuracy"), method.mean("tau"), found.delta) == (0.905, 5.75, 0.1)
    assert method.interval == wilson_interval(3620, 4000)
    row, no_data = rows(found)
    assert (row.method, row.accuracy, row.tau, row.forced, row.ece) == ("theirs", "0.905", "5.75", "–", "–")
    assert row.note == "computed elsewhere: 4,000 episodes"
    assert no_data.accuracy == "–"
    write_comparison(found, tmp_path)
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")
    numbers = json.loads((tmp_path / "comparison.json").read_text(), parse_constant=pytest.fail)
    assert numbers["methods"][0]["mean"]["ece"] is None


def test_another_problem_or_target_is_refused(tmp_path):
    mine = written(tmp_path, "mine", delta=0.1)
    with pytest.raises(UserError, match="cannot be compared"):
        plan([mine, written(tmp_path, "other", problem="bandit-a3p5")])
    with pytest.raises(UserError, match=r"mine\.json was made for δ = 0\.1 and .*strict\.json for δ = 0\.05"):
        plan([mine, written(tmp_path, "strict", delta=0.05)])
    assert plan([written(tmp_path), written(tmp_path, "strict", delta=0.05)]).delta == 0.05


def test_lists_of_the_same_worlds_are_compared_pair_by_pair(tmp_path):
    rng = np.random.default_rng(0)
    slow = rng.integers(3, 9, 400)
    fast = slow - rng.integers(0, 2, 400)
    given = [
        written(tmp_path, name, episodes=400, tau=float(np.mean(stops)), worlds=worlds, stop_times=stops.tolist())
        for name, stops, worlds in (("slow", slow, "a"), ("fast", fast, "a"), ("elsewhere", fast, "b"))
    ]
    found = compare(plan(given, baselines=["none"]))
    (pair,) = pairs(found.methods)
    assert (pair.method, pair.other, pair.column) == ("fast", "slow", "tau")
    assert (pair.difference, (pair.low, pair.high)) == (np.mean(fast - slow), mean_interval(fast - slow))
    assert "against slow, paired" in rows(found)[1].note


def test_the_command_takes_such_a_file_beside_a_team(tmp_path, capsys):
    words = ["compare", "bandit-quick", written(tmp_path), "--episodes", "50", "--baselines", "none"]
    assert cli.main([*words, "--out", str(tmp_path / "out")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "theirs" in printed
    assert "computed elsewhere" in printed
