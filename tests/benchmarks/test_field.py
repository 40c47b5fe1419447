"""Agents in the field: what the benchmark counts and compares, and what it found."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.field import Counts, Outcome, check_alone, world_of
from benchmarks.field_predictions import consistency, late_rate, rows
from icmape import UserError
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from tests.support import build_preset, lively_team

ROOT = Path(__file__).parents[2]
FILE, PAGE = ROOT / "results" / "field.json", ROOT / "docs" / "reference" / "mqtt.md"


def test_what_was_found_in_200_episodes():
    """The team plays in worlds that it was trained for, and nothing is lost."""
    written = json.loads(FILE.read_text())
    value = written["value"]
    counts, rates = value["counts"], value["rates"]
    assert (written["asked"]["team"], written["asked"]["worlds"]) == ("nitrate-synthetic", "synthetic measurements")
    assert counts["episodes"] >= 200
    assert counts["kills"] > 50
    assert counts["coordinator_kills"] > 10
    assert min(value["messages"].values()) > 0
    assert Counts(**counts).faults == 0
    assert counts["acknowledged"] > 1000
    assert counts["acknowledged"] == counts["recorded"]
    assert value["predicted"]["episodes"] >= 1000
    for part, late in ((value, rates["late"]), (value["session"], 0.0)):
        assert part["predicted"]["changes"] == {**rates, "late": late}
        assert consistency(part, counts["episodes"], part["predicted"]) == part["consistency"]
        assert min(test["p"] for test in part["consistency"].values()) > 0.01


def test_the_page_says_what_the_file_says():
    """The command prints these rows."""
    written, page = json.loads(FILE.read_text()), PAGE.read_text()
    assert "\n".join(rows(written["asked"], written["value"])) in page


def entries(*kinds: str) -> dict:
    """One entry of agent 0 a round, each a tell or a miss."""
    keys = [(kind, 0, number) for number, kind in enumerate(kinds)]
    return {key: {"type": key[0], "agent": 0, "round": key[2], "action": 1, "reading": None} for key in keys}


def compared(kept: dict, own: dict, waiting: tuple = (), refused: tuple = ()) -> Counts:
    counts = Counts()
    counts.compare(kept, own, {"waiting": list(waiting), "refused": list(refused)})
    return counts


@pytest.mark.parametrize("kind", ["tell", "missed"])
def test_a_loss_is_noticed_whatever_was_told_and_whatever_else_is_not_acknowledged(kind):
    own = entries("tell", "missed", kind, "tell")
    assert compared(own, own) == Counts(acknowledged=4, recorded=4)
    assert not compared(own, own).faults
    kept = {key: entry for key, entry in own.items() if key[2] < 2}
    found = compared(kept, own, waiting=("tell-3", "stop-9"))
    assert found == Counts(acknowledged=3, acknowledged_lost=1, recorded=2, unacknowledged=2)
    other = {key: {**entry, "action": entry["action"] + (key[2] == 2)} for key, entry in own.items()}
    assert compared(other, own) == Counts(acknowledged=4, acknowledged_lost=1, recorded=4, unknown=1)
    assert compared(own, kept).unknown == 2


@pytest.mark.parametrize("name", ["without_end", "acknowledged_lost", "unknown", "refused", "unacknowledged"])
def test_each_of_these_makes_the_command_fail(name):
    assert Counts(**{name: 1}).faults == 1


def test_a_difference_is_noticed():
    """Accuracies of 0.9 and 0.8 in 200 and 1,000 episodes are 3.3 standard errors apart: by hand."""
    found = {"accuracy": 0.9, "tau": 7.0, "tau_error": 0.1}
    expected = {"episodes": 1000, "accuracy": 0.8, "tau": 7.0, "tau_error": 0.0}
    pooled = (180 + 800) / 1200
    z = 0.1 / np.sqrt(pooled * (1 - pooled) * (1 / 200 + 1 / 1000))
    tests = consistency(found, 200, expected)
    assert tests["accuracy"]["z"] == pytest.approx(z)
    assert tests["accuracy"]["p"] < 0.001 < tests["tau"]["p"]


def test_the_rate_of_late_bits_gives_as_many_episodes_with_a_late_agent():
    """Of four episodes with two others each, one has late agents: 1 - (1 - p)² = 1/4, whoever was late in it."""
    episodes = [Outcome(True, 3 + (number == 1), True, 3, others=2) for number in range(4)]
    assert late_rate(episodes) == pytest.approx(1 - np.sqrt(3 / 4))
    assert late_rate([Outcome(True, 3, True, 3, others=5)] * 3) == 0
    assert late_rate([Outcome(True, 4, True, 3, others=5)] * 3) == pytest.approx(1, abs=1e-3)


def test_readings_of_a_world_are_those_of_the_problem():
    """Their mean in a cell is that of the field. Readings of a bandit depend on the others, and are refused."""
    problem = build_preset("nitrate-synthetic")
    policy = Schedule(jnp.zeros((1, problem.agents), jnp.int32), problem.actions + 1)
    team = Team(problem, policy, FixedLength(1), ExactInference())
    check_alone(team, draws=2)
    truth, readings = world_of(team, 3, 1)
    assert readings.shape == (problem.horizon - 1, problem.actions, problem.agents, problem.repeats)
    world = problem.sample(key=jax.random.split(jax.random.fold_in(jax.random.key(7_003), 1), 3)[0])
    np.testing.assert_array_equal(truth, world.hypothesis)
    high = np.asarray(world.mean) > 3 * np.asarray(world.deviation)  # no reading is cut at 0 there
    logs = np.log1p(readings.astype(np.float64)).mean(axis=(0, 2, 3))
    error = np.asarray(world.deviation) / np.sqrt(readings[:, 0].size)
    assert high.sum() > 3
    assert (np.abs(logs - np.asarray(world.mean))[high] < 5 * error[high] + 1e-3).all()  # 1 in a million, a cell
    with pytest.raises(UserError, match="depend on what others do"):
        check_alone(lively_team())
