"""QMIX's mixing network: monotonic in every agent's value, with weights from the history of the team."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning import value
from icmape.learning.config import Config, Value, with_algorithm
from icmape.learning.mixing import MIXINGS, Monotonic
from icmape.learning.optimize import adam
from icmape.settings import override
from tests.learning.replayed import PROBLEM, batch
from tests.support import drawn, once

SMALL = {"network.hidden_size": 4, "network.share_weights": False, "algorithm.mixing_size": 3}
CONFIG = override(with_algorithm(Config(), "qmix"), SMALL)
MIXING: Monotonic = drawn(lambda: MIXINGS["qmix"](PROBLEM, CONFIG, key=jax.random.key(0)), scale=2.0)
STATES = jax.random.normal(jax.random.key(1), (200, MIXING.encoder.size))
VALUES = jax.random.normal(jax.random.key(2), (200, PROBLEM.agents))
mixed = jax.jit(jax.vmap(MIXING.mixed))


def test_no_agents_value_can_lower_the_teams():
    slopes = once(lambda: jax.vmap(jax.grad(MIXING.mixed))(VALUES, STATES))
    assert np.all(slopes >= 0)
    assert np.all(np.max(slopes, axis=0) > 0.1)
    outputs = once(lambda: jax.vmap(MIXING.first)(STATES))
    assert np.any(outputs < -0.1)  # what gives the weights has both signs


def test_a_hand_worked_mixing():
    """W₁ = [[2, 1], [0.5, 3]], b = (0, -1), w₂ = (4, 2) / 2 units, whatever the state.

    Values (0.5, -0.25) give 0.75 and -0.5, so the units are 0.75 - 0 and (e^-1.5 - 1) - (e^-1 - 1).
    """
    layers = (
        (MIXING.first, [2.0, -1.0, 0.5, 3.0]),
        (MIXING.offset, [0.0, -1.0]),
        (MIXING.second, [-4.0, 2.0]),
    )
    fixed = []
    for layer, bias in layers:
        silent = jnp.zeros((len(bias), MIXING.encoder.size))
        fixed.append(eqx.tree_at(lambda one: (one.weight, one.bias), layer, (silent, jnp.array(bias))))
    mixing = eqx.tree_at(lambda m: (m.first, m.offset, m.second), MIXING, tuple(fixed))
    found = mixing.mixed(jnp.array([0.5, -0.25]), STATES[0])
    assert float(found) == pytest.approx((4 * 0.75 + 2 * (np.exp(-1.5) - np.exp(-1.0))) / 2, abs=1e-6)


def test_the_best_joint_action_is_every_agents_own_best():
    """For two agents with three actions each, in 200 states."""
    tables = np.asarray(jax.random.normal(jax.random.key(3), (200, 2, 3)))
    joint = list(itertools.product(range(3), repeat=2))
    worth = np.stack([mixed(jnp.asarray(tables[:, [0, 1], list(pair)]), STATES) for pair in joint], axis=1)
    best = np.array(joint)[np.argmax(worth, axis=1)]
    np.testing.assert_array_equal(best, np.argmax(tables, axis=-1))


def test_a_team_without_values_is_worth_as_much_as_stopping():
    np.testing.assert_array_equal(mixed(jnp.zeros_like(VALUES), STATES), 0.0)


def test_the_loss_teaches_every_agent_and_the_mixing():
    learner = drawn(lambda: value.init(PROBLEM, CONFIG, adam(1.0), key=jax.random.key(4)))
    data, targets = batch(), jnp.full((1, 4, 1), 0.7)

    def loss(parts: tuple) -> jax.Array:
        return value.value_loss_of(CONFIG, *parts, data, targets)

    actors, mixing = once(lambda: jax.grad(loss)((learner.actors, learner.mixing)))
    assert np.all(np.abs(actors.actor.head.bias).max(axis=-1) > 1e-3)  # one row per agent
    for layer in (mixing.first, mixing.offset, mixing.second):
        assert np.abs(layer.bias).max() > 1e-5
    assert max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(mixing.encoder)) > 1e-5


def test_it_reads_the_history_of_the_team_and_not_its_future():
    """From round 2 on the features differ, and with them the team's value of equal values."""
    seen, values = batch().seen, jnp.full((1, 4, 2), 0.5)
    token = seen.team.token
    other = seen._replace(team=seen.team._replace(token=token.at[:, 2:].add(1.0)))
    one, two = once(lambda: (MIXING(values, seen), MIXING(values, other)))
    assert one.shape == (1, 4, 1)
    np.testing.assert_array_equal(one[0, :2], two[0, :2])
    assert np.all(np.abs(one[0, 2:] - two[0, 2:]) > 1e-3)


def test_it_begins_as_about_the_sum():
    """Over 100 initial networks with 32 units, the value of a team whose agents' values are 0.1."""
    config = with_algorithm(Config(), "qmix")
    assert isinstance(config.algorithm, Value)
    assert config.algorithm.mixing_size == 32

    def begin(key: jax.Array) -> jax.Array:
        mixing = Monotonic(PROBLEM, config, key=key)
        return mixing.mixed(jnp.full(2, 0.1), jnp.zeros(mixing.encoder.size))

    found = once(lambda: jax.vmap(begin)(jax.random.split(jax.random.key(5), 100)))
    np.testing.assert_allclose(found, 0.2, rtol=0.1)
