"""Fixed schedules: accuracies by formula against every outcome written out, and the best ones against known values."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from icmape.play.episodes import play
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.zoo.bandit.bandit import Bandit, BanditBelief, gauss_jacobi
from icmape.zoo.bandit.schedules import best_plan, schedule_accuracy, whole_schedule

A3P5 = """.028 .077 .167 .225 .305 .413 .518 .651 .817 .858 .892 .918 .930 .938 .946 .954 .962 .967 .972 .977 .982 .986
.989 .991 .992"""
A5P3 = """.008 .015 .029 .055 .106 .152 .218 .314 .451 .648 .676 .704 .733 .764 .796 .815 .835 .855 .876 .897 .906 .916
.925 .935 .945"""


@pytest.mark.parametrize(("arms", "players", "known"), [(3, 5, A3P5), (5, 3, A5P3)])
def test_best_accuracy_after_1_to_25_rounds(arms, players, known):
    problem = Bandit(arms, players, 50)
    found = [best_plan(problem, rounds).accuracy for rounds in range(1, 26)]
    np.testing.assert_allclose(found, [float(value) for value in known.split()], atol=6e-4)


@pytest.mark.parametrize("prior", [{}, {"mean_alpha": 1.0, "mean_beta": 3.0}, {"mean_low": 0.0}])
def test_accuracy_is_that_of_all_outcomes_written_out(prior):
    """Each arm's readings in every possible order of payoffs; the posterior itself says what is decided."""
    problem = Bandit(2, 3, 6, **prior)
    loads = np.array([[3, 0], [1, 2], [2, 1], [2, 1]])
    by_hand = np.prod([arm_by_hand(problem, loads[:, arm], **prior) for arm in range(2)])
    assert float(schedule_accuracy(problem, jnp.asarray(loads))) == pytest.approx(by_hand, abs=1e-5)


def arm_by_hand(problem, loads, mean_low=0.3, mean_alpha=1.0, mean_beta=1.0) -> float:
    nodes, weights = gauss_jacobi(20, mean_alpha, mean_beta)
    means = mean_low + (1 - mean_low) * nodes
    at = np.repeat(loads, loads)  # the load of every reading
    right = 0.0
    for paid in itertools.product([0, 1], repeat=len(at)):
        hits = np.bincount(at - 1, np.array(paid), minlength=3).astype(int)
        misses = np.bincount(at - 1, minlength=3) - hits
        belief = BanditBelief(*(jnp.asarray(np.stack([x, x]), jnp.int32) for x in (hits, misses)))
        decision = int(np.asarray(problem.log_posterior(belief))[0].argmax()) + 1
        served = np.array(at) <= decision
        if np.any(np.array(paid)[~served]):
            continue
        count, of = np.array(paid)[served].sum(), served.sum()
        right += np.sum(weights * means**count * (1 - means) ** (of - count)) / 3
    return right


def test_no_schedule_of_a_small_bandit_is_better():
    problem = Bandit(2, 3, 12)
    rows = [(load, 3 - load) for load in range(4)]
    for rounds in range(1, 5):
        every = itertools.combinations_with_replacement(rows, rounds)
        best = max(float(schedule_accuracy(problem, jnp.array(loads))) for loads in every)
        assert best_plan(problem, rounds).accuracy == pytest.approx(best, abs=1e-6)


def test_a_whole_schedule_starts_with_the_plan_and_uses_everyone():
    problem = Bandit(3, 5, 50)
    table = np.asarray(whole_schedule(problem, 9))
    loads = np.stack([np.bincount(row, minlength=3) for row in table])
    assert table.shape == (49, 5)
    assert sorted(map(tuple, loads[:9].tolist())) == sorted(map(tuple, best_plan(problem, 9).loads.tolist()))
    assert np.all(np.diff(loads[:9].max(axis=1)) <= 0)  # largest loads first
    assert float(schedule_accuracy(problem, jnp.asarray(loads))) > 0.95


def test_coupled_capacities_count():
    """A Dirichlet of 0.2 makes arms alike. 4,000 worlds: standard error at most 0.008, 5 of them: false alarm 1e-6."""
    problem = Bandit(2, 3, 12, capacity_concentration=0.2)
    plan = best_plan(problem, 3)
    table = jnp.asarray([np.repeat([0, 1], row) for row in plan.loads], jnp.int32)
    team = Team(problem, Schedule(table, 3), FixedLength(3), ExactInference())
    assert play(team, 4000, 0).team.correct[:, 3].mean() == pytest.approx(plan.accuracy, abs=0.04)
    assert plan.accuracy > best_plan(Bandit(2, 3, 12), 3).accuracy + 0.01
