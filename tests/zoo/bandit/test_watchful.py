"""Schedules that are left early: what a player expects, that it reads nothing of the others, and how fast they are."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.evaluation.metrics import evaluate
from icmape.play.episodes import play
from icmape.play.inference import ExactInference
from icmape.play.policy import Round
from icmape.play.stop import LearnedStop
from icmape.play.team import STOP, Team
from icmape.problem import Features
from icmape.zoo.bandit.bandit import Bandit, BanditBelief, gauss_jacobi
from icmape.zoo.bandit.outlook import chance_right, gain_per_round, own_readings, planned_readings
from icmape.zoo.bandit.schedules import schedule_accuracy, whole_schedule
from icmape.zoo.bandit.watchful import AdaptivePulls, FixedPulls, TeamSchedule


def test_a_players_chance_of_a_right_answer_is_that_of_all_outcomes_written_out():
    """One arm: own readings are given, every outcome of the others' is decided by the exact posterior of all."""
    problem = Bandit(1, 3, 8)
    own = (np.array([0, 1, 0]), np.array([1, 0, 2]))  # paid and not, at loads 1, 2, 3
    others = np.array([1, 2, 3])
    nodes, weights = gauss_jacobi(20, 1.0, 1.0)
    means = 0.3 + 0.7 * nodes
    right = whole = 0.0
    for capacity in (1, 2, 3):
        chance = np.stack([means if load <= capacity else np.zeros_like(means) for load in (1, 2, 3)])
        given = weights * np.prod(chance ** own[0][:, None] * (1 - chance) ** own[1][:, None], axis=0)
        whole += given.sum()
        for paid in itertools.product([0, 1], repeat=6):
            hits = np.array([sum(paid[:1]), sum(paid[1:3]), sum(paid[3:])])
            likely = given * np.prod(chance ** hits[:, None] * (1 - chance) ** (others - hits)[:, None], axis=0)
            every = [jnp.asarray(x[None], jnp.int32) for x in (own[0] + hits, own[1] + others - hits)]
            if likely.sum() > 0 and int(problem.log_posterior(BanditBelief(*every))[0].argmax()) + 1 == capacity:
                right += likely.sum()
    seen = BanditBelief(*(jnp.asarray(x[None], jnp.int32) for x in own))
    found = float(chance_right(problem, seen, jnp.asarray(others[None], jnp.int32)))
    assert found == pytest.approx(right / whole, abs=1e-5)


def test_before_anything_is_seen_the_outlook_is_the_schedules_accuracy():
    problem = Bandit(2, 3, 12)
    table = whole_schedule(problem, 4)
    planned, loads = (
        jax.jit(planned_readings)(problem, table),
        jax.jit(lambda rows: jax.vmap(problem.loads)(rows))(table),
    )
    chance, mine = jax.jit(chance_right), jax.jit(own_readings)
    for rounds in (0, 1, 5):
        accuracy = float(schedule_accuracy(problem, loads.at[rounds:].set(0)))
        assert float(chance(problem, problem.belief(), planned[rounds])) == pytest.approx(accuracy, abs=1e-6)
    gains = [(float(schedule_accuracy(problem, loads.at[n:].set(0))) - 1 / 9) / n for n in (1, 2, 3, 4, 6, 8)]
    assert float(jax.jit(gain_per_round)(problem, problem.belief(), planned, jnp.int32(0))) == pytest.approx(
        max(gains), abs=1e-6
    )
    parts = sum(np.asarray(mine(problem, table, jnp.int32(player))) for player in range(3))
    np.testing.assert_array_equal(parts, planned)


@pytest.mark.parametrize("rule", [FixedPulls, AdaptivePulls])
def test_another_players_readings_cannot_move_my_scores(rule):
    problem = Bandit(2, 3, 12)
    policy = rule(problem, whole_schedule(problem, 4), jnp.float32(0.97))
    rng = np.random.default_rng(0)

    @jax.jit
    def scores(readings):
        def decide(state, t):
            arms, paid = readings[t]
            hot = jax.nn.one_hot(arms, 2, dtype=jnp.int32) * jnp.minimum(t, 1)
            token = jnp.concatenate(
                [jnp.where(paid[:, None] > 0, hot, 0), jnp.where(paid[:, None] > 0, 0, hot)], axis=1
            )
            seen = Round(t, Features(token.astype(jnp.float32)), arms, (), ())
            return policy.decide(state, seen, key=jax.random.key(0))

        return jax.lax.scan(decide, policy.start(), jnp.arange(9))[1]

    first = rng.integers(0, 2, (9, 2, 3)).astype(np.int32)
    second = first.copy()
    second[:, :, 1:] = rng.integers(0, 2, (9, 2, 2))
    one, two = np.asarray(scores(jnp.asarray(first))), np.asarray(scores(jnp.asarray(second)))
    np.testing.assert_array_equal(one[:, 0], two[:, 0])
    assert not np.array_equal(one[:, 1:], two[:, 1:])


def test_whoever_was_paid_goes_elsewhere_and_the_others_stay():
    """Round 0 puts all three on arm 0, round 1 again: only the player who was paid leaves for arm 1, tested next."""
    problem = Bandit(2, 3, 8)
    table = jnp.array([[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0], [0, 0, 1]])
    team = Team(problem, AdaptivePulls(problem, table, jnp.float32(0.999)), LearnedStop(), ExactInference())
    assert team.act(0) == 0
    assert team.act(0, [0], [1]) == 1
    assert team.act(1, [0], [0]) == 0
    fixed = Team(problem, FixedPulls(problem, table, jnp.float32(0.999)), LearnedStop(), ExactInference())
    assert fixed.act(0, [0], [1]) == 0
    assert fixed.act(0, [0, 0, 1, 1, 0, 1], [1, 1, 1, 1, 1, 1]) == STOP  # both arms serve three: nothing left to see


def test_a_schedule_with_a_global_stop_ends_when_everything_is_resolved():
    problem = Bandit(2, 3, 12)
    team = Team(
        problem, TeamSchedule(problem, whole_schedule(problem, 4), jnp.float32(0.97)), LearnedStop(), ExactInference()
    )
    episodes = play(team, 500, 0)
    largest = (np.asarray(episodes.played.hypothesis) == 2).all(axis=1)  # one payoff at load 3 on each arm is proof
    assert episodes.played.stop[largest].mean() < episodes.played.stop[~largest].mean() - 1


def test_the_adaptive_rule_on_the_papers_bandit():
    """τ about 10.5 at accuracy 0.90. 2,000 worlds: standard errors 0.05 and 0.002 (confidence); 4 of them: 1e-4."""
    problem = Bandit(3, 5, 50)
    policy = AdaptivePulls(problem, whole_schedule(problem, 9), jnp.float32(0.9785))
    result = evaluate(Team(problem, policy, LearnedStop(), ExactInference()), episodes=2000)
    assert result.tau < 10.9
    assert result.confidence > 0.892
    assert result.accuracy > 0.873
