"""Rewards from confidence, and the returns that critics learn.

The paper's reward is -ζ per round and r - (1-δ) at the stop. The shaped reward is r_{t+1} - r_t - ζ per round and 0 at
the stop. The sums differ by r_0 - (1-δ) only, so the optimal policy is the same, and values are relative to stopping.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Integer

from icmape.learning.algorithms import Scalar


class Rewards(NamedTuple):
    """Rewards of continuing and of stopping in round t."""

    going_on: Float[Array, "rounds"]
    stopping: Float[Array, "rounds"]


def confidence_rewards(
    confidence: Float[Array, "rounds"], step_cost: Float[Array, ""], delta: float, *, shaped: bool
) -> Rewards:
    """Rewards from the confidence r_t and the cost of a round ζ. The last round forces STOP."""
    if not shaped:
        return Rewards(jnp.broadcast_to(-step_cost, confidence.shape), confidence - (1.0 - delta))
    after = jnp.concatenate([confidence[1:], confidence[-1:]])
    return Rewards(after - confidence - step_cost, jnp.zeros_like(confidence))


def episode_rewards(
    confidence: Float[Array, "rounds"],
    payoff: Float[Array, "rounds"] | None,
    step_cost: Float[Array, ""],
    delta: float,
    *,
    shaped: bool,
) -> Rewards:
    """Rewards from the payoffs of the environment if the episode has them (0 for STOP), else from the confidence."""
    if payoff is not None:
        return Rewards(payoff - step_cost, jnp.zeros_like(payoff))
    return confidence_rewards(confidence, step_cost, delta, shaped=shaped)


def episode_return(rewards: Rewards, stop: Integer[Array, ""]) -> Float[Array, ""]:
    """The sum of rewards of an episode that stopped in round `stop`."""
    before = jnp.arange(rewards.going_on.shape[0]) < stop
    return jnp.sum(jnp.where(before, rewards.going_on, 0.0)) + rewards.stopping[stop]


def lambda_returns(
    rewards: Rewards,
    values: Float[Array, "rounds agents"],
    ends: Bool[Array, "rounds"],
    explored: Bool[Array, "rounds"],
    trace: Scalar,
) -> Float[Array, "rounds agents"]:
    """G_t = reward of continuing + (1-λ) V_{t+1} + λ G_{t+1}, with V alone if round t+1 was explored.

    `values` are those of the target policy. Where the team `ends` an episode, G is the reward of stopping.
    """

    def back(after: Float[Array, "agents"], row: tuple) -> tuple[Float[Array, "agents"], Float[Array, "agents"]]:
        """One step of the backward recursion."""
        reward, value, stopping, end, cut = row
        followed = jnp.where(end, jnp.broadcast_to(stopping, value.shape), reward + after)
        mixed = jnp.where(cut, value, (1.0 - trace) * value + trace * followed)
        return mixed, mixed

    rows = (rewards.going_on, values, rewards.stopping, ends, explored)
    _, continuation = jax.lax.scan(back, jnp.zeros_like(values[0]), rows, reverse=True)
    after = jnp.concatenate([continuation[1:], jnp.zeros_like(continuation[:1])])
    return rewards.going_on[:, None] + after


def masked_mean(values: Float[Array, "*shape"], mask: Bool[Array, "*shape"]) -> Float[Array, ""]:
    """Mean over the entries of the mask; 0 if the mask is empty."""
    return jnp.sum(jnp.where(mask, values, 0.0)) / jnp.maximum(jnp.sum(mask.astype(values.dtype)), 1.0)


def weighted_mean(values: Float[Array, "*shape"], weights: Float[Array, "*shape"]) -> Float[Array, ""]:
    """Weighted mean; the weights must not all be 0."""
    return jnp.sum(values * weights) / jnp.sum(weights)


class Soft(NamedTuple):
    """Probabilities of continuing and stopping, in episodes that continue past every stop."""

    together: Float[Array, "batch rounds"]  # no agent stops in round t, given that it is reached
    reached: Float[Array, "batch rounds"]  # round t is reached
    stops: Float[Array, "batch rounds"]  # the episode ends in round t; forced in the last round

    @property
    def played(self) -> Float[Array, "batch rounds"]:
        """The probability that round t is reached and no agent stops in it."""
        return self.reached * self.together


def soft_stops(going: Float[Array, "batch rounds agents"], chance: Scalar = 0.0) -> Soft:
    """From the probabilities of continuing. Episodes end by any STOP, at random (`chance`), or in the last round."""
    together = ((1.0 - chance) * jnp.prod(going, axis=-1)).at[:, -1].set(0.0)
    before = jnp.cumprod(together[:, :-1], axis=1)
    reached = jnp.concatenate([jnp.ones_like(together[:, :1]), before], axis=1)
    return Soft(together, reached, reached * (1.0 - together))


def soft_returns(
    rewards: Float[Array, "batch rounds"],
    values: Float[Array, "batch rounds"],
    together: Float[Array, "batch rounds"],
    trace: Scalar,
) -> Float[Array, "batch rounds"]:
    """The return G_t of continuing in round t, in expectation over later stops, where stopping has value 0.

    G_t = reward + c_{t+1} · ((1-λ) U_{t+1} + λ G_{t+1}), with c the probability that no agent stops and U the values of
    continuing.
    """

    def back(after: Float[Array, "batch"], row: tuple) -> tuple[Float[Array, "batch"], Float[Array, "batch"]]:
        reward, value, going = row
        gain = reward + after
        return going * ((1.0 - trace) * value + trace * gain), gain

    rows = (rewards.T, values.T, together.T)
    return jax.lax.scan(back, jnp.zeros_like(rewards[:, 0]), rows, reverse=True)[1].T
