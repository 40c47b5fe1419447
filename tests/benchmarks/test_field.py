"""Agents in the field: what the benchmark counts and compares, and what it found."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.field import check_alone, consistency, world_of
from icmape import UserError
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from tests.support import build_preset, lively_team

FILE = Path(__file__).parents[2] / "results" / "field.json"


def test_what_was_found_in_200_episodes():
    value = json.loads(FILE.read_text())["value"]
    counts, rates = value["counts"], value["rates"]
    assert counts["episodes"] >= 200
    assert counts["kills"] > 50
    assert min(value["messages"].values()) > 0
    names = ("without_end", "acknowledged_lost", "unknown", "refused", "unacknowledged")
    assert {name: counts[name] for name in names} == dict.fromkeys(names, 0)
    assert counts["acknowledged"] == counts["recorded"]
    assert value["predicted"]["changes"] == rates
    assert value["predicted"]["episodes"] >= 1000
    assert consistency(value, value["predicted"]) == value["consistency"]
    assert min(test["p"] for test in value["consistency"].values()) > 0.01


def test_a_difference_is_noticed():
    """Accuracies of 0.9 and 0.8 in 200 and 1,000 episodes are 3.3 standard errors apart: by hand."""
    found = {"counts": {"episodes": 200, "without_end": 0}, "accuracy": 0.9, "tau": 7.0, "tau_error": 0.1}
    expected = {"episodes": 1000, "accuracy": 0.8, "tau": 7.0, "tau_error": 0.0}
    pooled = (180 + 800) / 1200
    z = 0.1 / np.sqrt(pooled * (1 - pooled) * (1 / 200 + 1 / 1000))
    tests = consistency(found, expected)
    assert tests["accuracy"]["z"] == pytest.approx(z)
    assert tests["accuracy"]["p"] < 0.001 < tests["tau"]["p"]


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
