"""Plans: the weights and advantages they learn from, and that they find the best schedule where all can be listed."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning import plan, train
from icmape.learning.config import Config, with_algorithm
from icmape.learning.plan import advantages, crossing, play_plan, training_rounds, window
from icmape.play.inference import ExactInference
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from tests.support import once

TARGET = jnp.float32(0.9)


class TestWindow:
    """Where a plan's confidence counts."""

    def test_weights_peak_at_the_first_length_that_suffices(self):
        curve = jnp.array([0.1, 0.3, 0.6, 0.8, 0.92, 0.95, 0.97])
        weights = np.asarray(window(curve, width=0.25, target=TARGET))
        np.testing.assert_allclose(weights, np.array([0, 0, 0, 1, 2, 1, 0]) / 4, atol=1e-6)

    def test_or_at_the_last_one_while_none_does(self):
        weights = np.asarray(window(jnp.linspace(0.1, 0.7, 7), width=0.1, target=TARGET))
        assert weights.argmax() == 6
        assert weights.sum() == pytest.approx(1.0)

    def test_no_weight_before_any_data(self):
        assert float(window(jnp.ones(3), width=1.0, target=TARGET)[0]) == 0.0


def test_an_advantage_is_what_follows_in_units_of_its_spread():
    """Two worlds, three prefixes, all weight on the last but one: what follows round 1 does not count any more."""
    potential = jnp.array([[[0.0, 0.2, 0.9], [0.0, 0.6, 0.1]]])
    found = advantages(potential, jnp.array([[0.0, 1.0, 0.0]]))
    np.testing.assert_allclose(found[0], [[-1.0, 0.0], [1.0, 0.0]], atol=1e-4)


@pytest.mark.parametrize(
    ("curve", "expected"),
    [([0.1, 0.5, 0.7, 0.95], 2.8), ([0.95, 0.99], 0.0), ([0.1, 0.9], 1.0), ([0.1, 0.2], np.inf)],
)
def test_a_curve_crosses_the_target_between_two_rounds(curve, expected):
    assert float(crossing(jnp.asarray(curve), TARGET)) == pytest.approx(expected, abs=1e-5)


def test_actors_begin_with_a_plan_that_reaches_the_target_and_with_no_other():
    """0.6 on its action and 0.2 on each of the two others; or a third on each."""
    table = jnp.array([[[0.0, 3.0, 1.0]]])
    for length, expected in ((4.0, [0.2, 0.6, 0.2]), (jnp.inf, [1 / 3] * 3)):
        found = plan.PlanFound(table, jnp.zeros(5), jnp.float32(length), jnp.float32(length), ())
        np.testing.assert_allclose(jax.nn.softmax(found.scores(0.6))[0, 0], expected, atol=1e-6)


def test_teams_that_adapt_get_some_rounds_more_than_a_plan_and_never_more_than_there_are():
    problem = Bandit(2, 3, 20)
    assert training_rounds(problem, 5.0) == 10
    assert training_rounds(problem, 30.0) == 20
    assert training_rounds(problem, np.inf) == 20


def test_a_plan_keeps_to_what_is_offered():
    """Masked actions are never drawn, however high their logits."""

    class Narrow(Bandit):
        def learner_action_mask(self, memory):
            return jnp.array([True, False])

    problem = Narrow(2, 2, 5)
    table = jnp.zeros((4, 2, 2)).at[..., 1].set(5.0)
    episode = once(lambda: play_plan(problem, table, jax.random.split(jax.random.key(0), 16), greedy=False))
    assert not np.any(np.asarray(episode.actions[:, :4]) == 1)
    np.testing.assert_array_equal(episode.stop, 4)


# -- the best schedule of a bandit small enough to list all of them

PROBLEM = Bandit(arms=2, players=2, horizon=4)
ROUNDS = 3
CONFIG = override(
    with_algorithm(Config(), "ppo"),
    {
        "delta": 0.1,
        "network.hidden_size": 8,
        "plan.iterations": 60,
        "plan.num_plans": 2,
        "plan.num_envs": 128,
        "plan.gradient_steps": 1,
        "posterior": "exact",
        "validation_episodes": 512,
        "settling_episodes": 4096,
        "plan.lr": 0.1,
    },
)


def exact_accuracy(schedules: np.ndarray, worlds: int = 4000) -> np.ndarray:
    """Mean confidence of the exact posterior after each of many schedules, in the same worlds."""

    @jax.jit
    @partial(jax.vmap, in_axes=(0, None))
    def accuracy(schedule: jax.Array, keys: jax.Array) -> jax.Array:
        table = 50.0 * jax.nn.one_hot(schedule, PROBLEM.actions)
        episode = play_plan(PROBLEM, table, keys, greedy=True)
        scores = jax.vmap(lambda e: ExactInference().unroll(PROBLEM, e)[-1])(episode)
        return jnp.mean(jax.vmap(PROBLEM.hypotheses.confidence)(scores))

    return np.asarray(accuracy(jnp.asarray(schedules), jax.random.split(jax.random.key(5), worlds)))


def test_the_plan_is_the_best_schedule_that_there_is():
    """All 4³ schedules of loads: per round both on arm 0, both on arm 1, or one on each (two ways, which are alike)."""
    joint = list(itertools.product(range(2), repeat=2))
    schedules = np.array(list(itertools.product(joint, repeat=ROUNDS)), np.int32)
    reached = exact_accuracy(schedules)
    seeds = jnp.array([0], jnp.int32)
    states = train.begin_plans(PROBLEM, CONFIG, ROUNDS, seeds)
    states, _ = train.advance_plans(PROBLEM, CONFIG, states, jnp.int32(0), jnp.int32(CONFIG.plan.iterations))
    found = plan.PlanFound(*jax.tree.map(lambda x: x[0], train.choose_plans(PROBLEM, CONFIG, states)))
    (number,) = np.flatnonzero(np.all(schedules == np.argmax(np.asarray(found.table), axis=-1), axis=(1, 2)))
    chosen = reached[number]
    assert chosen >= reached.max() - 3e-3  # schedules that are alike differ by as much in these worlds
    assert chosen > np.median(reached) + 0.02  # which is no matter of course
