"""Returns that average over who stops when, against enumerating every stop."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning.returns import soft_returns, soft_stops, weighted_mean

ROUNDS, AGENTS = 4, 2
RNG = np.random.default_rng(1)
GOING = jnp.asarray(RNG.uniform(0.2, 0.9, (1, ROUNDS, AGENTS)), jnp.float32)
REWARDS = jnp.asarray([[0.3, -0.2, 0.4, 0.0]])
VALUES = jnp.asarray([[0.5, 0.1, -0.3, 0.0]])


def stop_chances() -> np.ndarray:
    """P(the episode ends in round t), by listing who stops where: the first STOP of any agent, or the last round."""
    going = np.asarray(GOING[0], np.float64)
    found = np.zeros(ROUNDS)
    for choices in itertools.product([0, 1], repeat=(ROUNDS - 1) * AGENTS):
        goes = np.array(choices).reshape(ROUNDS - 1, AGENTS)
        chance = np.prod(np.where(goes == 1, going[:-1], 1 - going[:-1]))
        stops = np.flatnonzero(~np.all(goes == 1, axis=1))
        found[stops[0] if len(stops) else ROUNDS - 1] += chance
    return found


def test_chances_of_stopping_are_those_of_the_first_stop_of_anyone():
    soft = soft_stops(GOING)
    expected = stop_chances()
    np.testing.assert_allclose(soft.stops[0], expected, atol=1e-6)
    np.testing.assert_allclose(soft.reached[0], 1 - np.append(0, np.cumsum(expected)[:-1]), atol=1e-6)
    np.testing.assert_allclose(soft.played[0], 1 - np.cumsum(expected), atol=1e-6)


def test_a_chance_of_its_own_ends_episodes_as_one_more_agent_would():
    one_more = jnp.concatenate([GOING, jnp.full((1, ROUNDS, 1), 0.75)], axis=-1)
    for found, expected in zip(soft_stops(GOING, 0.25), soft_stops(one_more), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_returns_are_expectations_over_later_stops():
    """λ = 1: going on in round t pays its reward and those of all later rounds, each if it is played."""
    together = np.asarray(soft_stops(GOING).together[0], np.float64)
    found = soft_returns(REWARDS, VALUES, soft_stops(GOING).together, 1.0)
    for t in range(ROUNDS - 1):
        later = [float(REWARDS[0, s]) * np.prod(together[t + 1 : s + 1]) for s in range(t, ROUNDS - 1)]
        assert float(found[0, t]) == pytest.approx(sum(later), abs=1e-6)
    assert float(found[0, -1]) == 0.0


def test_without_traces_returns_are_one_reward_and_the_next_value():
    together = soft_stops(GOING).together
    found = soft_returns(REWARDS, VALUES, together, 0.0)
    expected = REWARDS[0, :-1] + together[0, 1:] * VALUES[0, 1:]
    np.testing.assert_allclose(found[0, :-1], expected, atol=1e-6)


def test_the_gain_times_its_chance_is_the_gradient_of_the_expected_return():
    """d/dc of Σ P(round t is played) · reward: what the loss of stops climbs, for every agent and round."""

    def expected_return(going: jax.Array) -> jax.Array:
        return jnp.sum(soft_stops(going).played * REWARDS)

    slope = jax.grad(expected_return)(GOING)
    soft = soft_stops(GOING)
    gain = soft_returns(REWARDS, VALUES, soft.together, 1.0)
    others = GOING[..., ::-1]  # of two agents
    expected = soft.reached[..., None] * others * gain[..., None]
    np.testing.assert_allclose(slope[:, :-1], expected[:, :-1], atol=1e-6)


def test_weighted_means():
    assert float(weighted_mean(jnp.array([1.0, 5.0]), jnp.array([3.0, 1.0]))) == 2.0
