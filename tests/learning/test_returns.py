"""Rewards and returns against sums written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning.config import Dual
from icmape.learning.dual import Price, start_price, update_price
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


class TestAddedPrice:
    dual = Dual(rule="additive", lr=0.5, max=0.1, margin=0.01)

    def after(self, cost: float, measured: float, delta: float = 0.1) -> float:
        price = Price(jnp.float32(cost), jnp.array(False))
        return float(update_price(price, jnp.float32(measured), delta, self.dual, jnp.float32(0)).step_cost)

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


class TestScaledPrice:
    """The target is 0.9 and a margin of 0.01; near it means within 0.02."""

    dual = Dual(rule="multiplicative", lr=5.0, max=0.1, margin=0.01)

    def after(self, cost: float, measured: float, reached: bool = True, progress: float = 0.0) -> Price:
        price = Price(jnp.float32(cost), jnp.array(reached))
        return update_price(price, jnp.float32(measured), 0.1, self.dual, jnp.float32(progress))

    def test_a_round_gets_dearer_while_the_team_is_surer_than_it_needs_to_be(self):
        """0.05 · exp(5 · (0.92 - 0.91))."""
        assert float(self.after(0.05, 0.92).step_cost) == pytest.approx(0.05 * np.exp(0.05), rel=1e-5)

    def test_a_round_gets_cheaper_while_it_is_not_sure_enough(self):
        assert float(self.after(0.05, 0.90).step_cost) == pytest.approx(0.05 * np.exp(-0.05), rel=1e-5)

    def test_on_target_the_price_stays(self):
        assert float(self.after(0.05, 0.91).step_cost) == pytest.approx(0.05, rel=1e-5)

    def test_no_error_counts_for_more_than_two_hundredths(self):
        assert float(self.after(0.05, 0.2).step_cost) == pytest.approx(0.05 * np.exp(-0.1), rel=1e-5)
        assert float(self.after(0.05, 1.0).step_cost) == pytest.approx(0.05 * np.exp(0.1), rel=1e-5)

    def test_the_price_keeps_below_its_limit(self):
        assert float(self.after(0.099, 1.0).step_cost) == pytest.approx(0.1)

    def test_it_waits_until_the_team_has_first_come_near_the_target(self):
        """What a team cannot do yet is no reason for cheaper rounds."""
        waiting = self.after(0.05, 0.88, reached=False)
        assert float(waiting.step_cost) == pytest.approx(0.05)
        assert not waiting.reached
        near = self.after(0.05, 0.895, reached=False)
        assert float(near.step_cost) == pytest.approx(0.05 * np.exp(-5 * 0.015), rel=1e-5)
        assert near.reached
        assert self.after(0.05, 0.5, reached=True).reached  # once is enough

    def test_it_waits_no_longer_than_three_fifths_of_training(self):
        assert float(self.after(0.05, 0.5, reached=False, progress=0.6).step_cost) == pytest.approx(0.05)
        assert float(self.after(0.05, 0.5, reached=False, progress=0.61).step_cost) < 0.05


class TestFirstPrice:
    def test_as_set(self):
        assert float(start_price(Dual(init=0.03), jnp.float32(8)).step_cost) == pytest.approx(0.03)

    def test_from_the_length_of_the_plan(self):
        """A quarter of a round's share in an episode of eight."""
        found = start_price(Dual(init=None), jnp.float32(8))
        assert float(found.step_cost) == pytest.approx(0.25 / 8)
        assert not found.reached

    def test_never_above_the_limit(self):
        assert float(start_price(Dual(init=0.3, max=0.2), jnp.float32(8)).step_cost) == pytest.approx(0.2)
        assert float(start_price(Dual(max=0.2), jnp.float32(1)).step_cost) == pytest.approx(0.2)
