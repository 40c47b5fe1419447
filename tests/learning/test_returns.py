"""Rewards and returns against sums written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning.config import Dual
from icmape.learning.dual import update_step_cost
from icmape.learning.returns import Rewards, confidence_rewards, episode_return, lambda_returns, masked_mean

DELTA, COST = 0.1, 0.03
ROUNDS, AGENTS = 6, 2


def some_confidence(seed: int = 0) -> jnp.ndarray:
    return jnp.asarray(np.random.default_rng(seed).uniform(0.2, 1.0, ROUNDS), jnp.float32)


def rewards(shaped: bool, seed: int = 0) -> Rewards:
    return confidence_rewards(some_confidence(seed), jnp.float32(COST), DELTA, shaped=shaped)


def test_the_papers_rewards_are_cost_a_round_and_confidence_at_the_stop():
    r = np.asarray(some_confidence())
    for stop in range(ROUNDS):
        found = float(episode_return(rewards(shaped=False), jnp.int32(stop)))
        assert found == pytest.approx(r[stop] - (1 - DELTA) - COST * stop, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_shaping_changes_every_return_by_the_same_constant(seed):
    """Shaped minus unshaped is (1-δ) - r_0 wherever the episode stops, so it cannot change which stop is best."""
    constant = (1 - DELTA) - float(some_confidence(seed)[0])
    for stop in range(ROUNDS):
        shaped = float(episode_return(rewards(True, seed), jnp.int32(stop)))
        plain = float(episode_return(rewards(False, seed), jnp.int32(stop)))
        assert shaped - plain == pytest.approx(constant, abs=1e-6)


def test_stopping_is_worth_nothing_when_values_are_relative_to_it():
    np.testing.assert_array_equal(rewards(shaped=True).stopping, 0.0)


def slow_returns(reward: Rewards, values: np.ndarray, stop: int, explored: np.ndarray, trace: float) -> np.ndarray:
    """G_t by its definition, in Python and float64: what round t pays and what round t+1 leads to."""
    going_on, stopping = np.asarray(reward.going_on, np.float64), np.asarray(reward.stopping, np.float64)

    def leads_to(t: int) -> np.ndarray:
        """What a round is worth to the one before it."""
        if explored[t]:
            return values[t]
        followed = np.full(AGENTS, stopping[t]) if t == stop else going_on[t] + leads_to(t + 1)
        return (1 - trace) * values[t] + trace * followed

    return np.stack([going_on[t] + leads_to(t + 1) for t in range(stop)])


def ends(stop: int) -> jnp.ndarray:
    """The one round in which the team ends the episode."""
    return jnp.arange(ROUNDS) == stop


fast_returns = jax.jit(lambda *args, trace: lambda_returns(*args, trace=trace), static_argnames="trace")


@pytest.mark.parametrize("shaped", [True, False])
@pytest.mark.parametrize("trace", [0.0, 0.6, 1.0])
def test_lambda_returns_are_the_slow_recursion(trace, shaped):
    rng = np.random.default_rng(1)
    for stop in (1, 3, ROUNDS - 1):
        for _ in range(3):
            values = rng.normal(size=(ROUNDS, AGENTS)).astype(np.float32)
            explored = rng.random(ROUNDS) < 0.4
            reward = rewards(shaped, int(rng.integers(100)))
            found = fast_returns(reward, jnp.asarray(values), ends(stop), jnp.asarray(explored), trace=trace)
            expected = slow_returns(reward, values, stop, explored, trace)
            np.testing.assert_allclose(found[:stop], expected, atol=1e-5)


def test_without_a_trace_returns_look_one_step_ahead():
    values = jnp.asarray(np.random.default_rng(0).normal(size=(ROUNDS, AGENTS)), jnp.float32)
    reward = rewards(True)
    found = fast_returns(reward, values, ends(4), jnp.zeros(ROUNDS, bool), trace=0.0)
    np.testing.assert_allclose(found[:4], np.asarray(reward.going_on)[:4, None] + values[1:5], atol=1e-6)


def test_with_a_full_trace_returns_are_what_the_episode_paid():
    """Monte Carlo: whatever the values say."""
    values = jnp.asarray(100 * np.random.default_rng(0).normal(size=(ROUNDS, AGENTS)), jnp.float32)
    reward = rewards(False)
    found = fast_returns(reward, values, ends(4), jnp.zeros(ROUNDS, bool), trace=1.0)
    for t in range(4):
        paid = float(np.sum(reward.going_on[t:4]) + reward.stopping[4])
        np.testing.assert_allclose(found[t], paid, atol=1e-5)


def test_masked_mean_leaves_out_what_is_not_there():
    values, mask = jnp.array([1.0, jnp.nan, 3.0]), jnp.array([True, False, True])
    assert float(masked_mean(values, mask)) == 2.0
    assert float(masked_mean(values, jnp.zeros(3, bool))) == 0.0


class TestStepCost:
    dual = Dual(rate=0.5, limit=0.1, margin=0.01)

    def after(self, cost: float, measured: float, delta: float = 0.1) -> float:
        return float(update_step_cost(jnp.float32(cost), jnp.float32(measured), delta, self.dual))

    def test_a_round_gets_dearer_while_the_team_is_surer_than_it_needs_to_be(self):
        """0.05 + 0.5·(0.95 - 0.91)."""
        assert self.after(0.05, 0.95) == pytest.approx(0.07, abs=1e-6)

    def test_a_round_gets_cheaper_while_it_is_not_sure_enough(self):
        assert self.after(0.05, 0.87) == pytest.approx(0.03, abs=1e-6)

    def test_on_target_the_price_stays(self):
        assert self.after(0.05, 0.91) == pytest.approx(0.05, abs=1e-6)

    def test_the_price_keeps_within_its_limits(self):
        assert self.after(0.05, 0.2) == 0.0
        assert self.after(0.1, 1.0) == pytest.approx(0.1)

    def test_a_target_above_one_is_one(self):
        """With δ below the margin, certainty must still be able to hold the price."""
        assert self.after(0.05, 1.0, delta=0.001) == pytest.approx(0.05, abs=1e-6)
