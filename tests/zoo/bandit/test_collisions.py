"""Collision tests: what each round tests, and how accurate a sweep of them is."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from icmape.baselines.registry import baseline_team
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.bandit.collisions import collision_tests, one_sweep
from icmape.zoo.bandit.schedules import schedule_accuracy
from icmape.zoo.bandit.watchful import FixedPulls

ROOT = Path(__file__).parents[3]


def test_the_sweep_of_the_papers_a3p5_by_hand():
    """Loads 5 and 4 arm by arm, then 3 and 2 together; what is left of the last two tests has no partner."""
    assert one_sweep(3, 5) == [
        *([5, 0, 0], [0, 5, 0], [0, 0, 5]),
        *([4, 1, 0], [1, 4, 0], [1, 0, 4]),
        *([3, 2, 0], [2, 3, 0], [2, 0, 3], [3, 0, 2]),
    ]


@pytest.mark.parametrize("arms", [2, 3, 5])
@pytest.mark.parametrize("players", [1, 2, 3, 6])
def test_a_sweep_tests_every_arm_at_every_load_with_all_players(arms, players):
    sweep = np.array(one_sweep(arms, players))
    np.testing.assert_array_equal(sweep.sum(axis=1), players)
    for load in range(2, players + 1):
        assert (sweep == load).any(axis=0).all()


@pytest.mark.parametrize(("players", "load"), [(1, 1), (4, 4)])
def test_a_single_arm_has_all_players(players, load):
    assert one_sweep(1, players) == [[load]]


def test_the_accuracy_of_a_sweep_by_hand():
    """Each of two arms is tested once with 3 and once with 2 players; E[(1-μ)^m] = 0.7^m / (m+1)."""
    missed = 0.7**3 / 4 + 0.7**2 / 3
    found = schedule_accuracy(Bandit(2, 3, 20), jnp.array(one_sweep(2, 3)))
    assert float(found) == pytest.approx((1 - missed / 3) ** 2, abs=1e-6)


def test_players_change_places_from_sweep_to_sweep():
    """So each takes part in the tests of all loads, and its own readings say something of every arm."""
    table = collision_tests(Bandit(2, 3, 14))
    assert table.shape == (13, 3)
    np.testing.assert_array_equal(table[:4], [[0, 0, 0], [1, 1, 1], [0, 0, 1], [0, 1, 1]])
    np.testing.assert_array_equal(table[4:8], [[0, 0, 0], [1, 1, 1], [1, 0, 0], [1, 0, 1]])
    together = (table[2:12:4] == 0).sum(axis=0)
    np.testing.assert_array_equal(together, [2, 2, 2])


def test_the_baseline_follows_the_tests_and_stops_by_a_level():
    problem = Bandit(2, 3, 14)
    team = baseline_team("collision-tests", problem, level=0.9)
    assert isinstance(team.policy, FixedPulls)
    np.testing.assert_array_equal(team.policy.table, collision_tests(problem))
    assert float(team.policy.level) == pytest.approx(0.9)


@pytest.mark.parametrize("preset", ["bandit-quick", "bandit-a3p5", "bandit-a5p3"])
def test_the_page_of_results_says_what_was_measured(preset):
    ours = json.loads((ROOT / "results" / preset / "collision-tests.json").read_text())
    other = json.loads((ROOT / "results" / preset / "baselines.json").read_text())["baselines"]["open-loop-local-stop"]
    low, high = ours["accuracy_low"], ours["accuracy_high"]
    cells = [f"{ours['provenance']['level']:.4f}", f"{ours['accuracy']:.3f} [{low:.3f}, {high:.3f}]"]
    cells += [f"{ours['confidence']:.3f}", f"{ours['tau']:.2f}", f"{other['tau']:.2f}"]
    page = (ROOT / "docs" / "results" / "baselines.md").read_text()
    (row,) = (line for line in page.splitlines() if f"{preset}/collision-tests.json" in line)
    assert [cell.strip() for cell in row.split("|")[2:-1]] == cells
    assert ours["tau"] > other["tau"]
