"""A problem of one's own, whole: which of two coins is it?

One agent tosses a coin that shows heads with probability 0.2 or 0.8. Train a team for it with

    icmape train --problem examples.coins:Coins
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from icmape import BIT, Categorical, Features, Problem


class Coin(NamedTuple):
    """What was drawn and is never shown."""

    hypothesis: jax.Array  # 0: tails-heavy, 1: heads-heavy


class Coins(Problem):
    """Two coins that differ in how often they show heads.

    Args:
        bias: how often the heads-heavy coin shows heads; the other one shows tails as often.
        horizon: rounds at most, the stop round included.
    """

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Categorical
    bias: jax.Array

    def __init__(self, bias: float = 0.8, horizon: int = 12):
        self.agents, self.actions, self.horizon = 1, 1, horizon
        self.hypotheses = Categorical(2)
        self.bias = jnp.float32(bias)

    @property
    def observation_range(self):
        """Heads (1) or tails (0)."""
        return BIT

    def sample(self, *, key):
        """One of the coins."""
        return Coin(jax.random.bernoulli(key).astype(jnp.int8))

    def start(self, world, *, key):
        """Nothing to see before the first toss."""
        return (), jnp.zeros(1, jnp.int8)

    def step(self, world, state, actions, *, key):
        """A toss, seen by the one agent there is."""
        heads = jnp.where(world.hypothesis == 1, self.bias, 1 - self.bias)
        return state, jax.random.bernoulli(key, heads, (1,)).astype(jnp.int8)

    def init_memory(self, agent, observation):
        """No toss yet."""
        return jnp.zeros(2)

    def update_memory(self, memory, agent, action, observation):
        """The last toss; the encoder keeps the past."""
        return jax.nn.one_hot(observation, 2)

    def features(self, memory):
        """What the networks read."""
        return Features(memory)
