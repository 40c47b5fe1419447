"""Group testing: which two of nine samples are positive?

The samples lie on a plate of three rows and three columns. A test of a pool should be positive if a positive sample is
in it; some results are wrong. Three labs have different equipment: the first pools rows and columns, the second
diagonals, and both can test single samples as well, but badly. The third tests single samples only. A lab sees its own
results only.

    icmape train --problem examples.pooling:Pooling
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from icmape import BIT, Categorical, Features, Problem

SIDE = 3
PAIRS = list(itertools.combinations(range(SIDE**2), 2))
ROW, COLUMN = np.divmod(np.arange(SIDE**2), SIDE)
# twelve lines of three (rows, columns, and diagonals that wrap around), then nine single samples
LINES = [place % SIDE == line for place in (ROW, COLUMN, ROW + COLUMN, ROW - COLUMN) for line in range(SIDE)]
POOLS = np.stack([*LINES, *np.eye(SIDE**2, dtype=bool)])  # (pools, samples)
EQUIPPED = np.repeat([0, 0, 1, 1, 2, 2, 2], SIDE)  # the lab that is equipped for each pool
HOLDS = POOLS[:, PAIRS].any(axis=2)  # (pools, pairs): whether a pool holds at least one of a pair


class Plate(NamedTuple):
    """What was drawn and is never shown."""

    hypothesis: jax.Array  # which of the 36 pairs is positive


class LabMemory(NamedTuple):
    """A lab's last test and its counts."""

    lab: jax.Array
    last: jax.Array  # (pools, 2) one-hot of the last pool and its result; zeros before the first
    counts: jax.Array  # (pools, 2) negative and positive results so far


class Pooling(Problem):
    """Three labs with pools of their own.

    Args:
        error: how often the results of each lab are wrong.
        unequipped: how often they are when a lab for pools tests a single sample.
        horizon: rounds at most, the stop round included.
    """

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Categorical
    error: jax.Array
    unequipped: jax.Array

    def __init__(self, error: Sequence[float] = (0.12, 0.2, 0.2), unequipped: float = 0.4, horizon: int = 25):
        self.agents, self.actions, self.horizon = 3, len(POOLS), horizon
        self.hypotheses = Categorical(len(PAIRS))
        self.error, self.unequipped = jnp.asarray(error, jnp.float32), jnp.float32(unequipped)

    def action_name(self, action):
        """The samples of the pool, counted from 1."""
        return "test " + "+".join(str(sample + 1) for sample in np.flatnonzero(POOLS[action]))

    def answer_name(self, answer):
        """Two samples, counted from 1."""
        first, second = PAIRS[int(answer)]
        return f"samples {first + 1} and {second + 1}"

    @property
    def observation_range(self):
        """Positive (1) or negative (0)."""
        return BIT

    def sample(self, *, key):
        """All pairs are equally likely."""
        return Plate(jax.random.randint(key, (), 0, len(PAIRS)).astype(jnp.int8))

    def start(self, world, *, key):
        """Nothing is known before the first test."""
        return (), jnp.zeros(self.agents, jnp.int8)

    def step(self, world, state, actions, *, key):
        """One test by each lab."""
        chances = jax.vmap(self.chances)(jnp.arange(self.agents), actions)[:, world.hypothesis]
        return state, (jax.random.uniform(key, (self.agents,)) < chances).astype(jnp.int8)

    def chances(self, agent, action):
        """Probability of a positive result for each pair."""
        error = jnp.where(jnp.asarray(EQUIPPED)[action] == agent, self.error[agent], self.unequipped)
        return jnp.where(jnp.asarray(HOLDS)[action], 1 - error, error)

    def init_memory(self, agent, observation):
        """No test yet."""
        nothing = jnp.zeros((self.actions, 2))
        return LabMemory(agent.astype(jnp.int32), nothing, nothing)

    def update_memory(self, memory, agent, action, observation):
        """The last result, and all results counted."""
        last = jax.nn.one_hot(action, self.actions)[:, None] * jax.nn.one_hot(observation, 2)[None]
        return LabMemory(memory.lab, last, memory.counts + last)

    def features(self, memory):
        """The last result and the counts. The log-likelihood is linear in the counts."""
        return Features(jnp.concatenate([memory.last.reshape(-1), memory.counts.reshape(-1) / 4]))

    def action_mask(self, memory):
        """The pools that the lab is equipped for, and single samples."""
        return (jnp.asarray(EQUIPPED) == memory.lab) | jnp.asarray(POOLS.sum(axis=1) == 1)

    @property
    def posterior(self):
        """Exact: results are independent given the pair."""
        return "exact"

    def belief(self, first=None):
        """The log-likelihood of every pair."""
        return jnp.zeros(len(PAIRS))

    def update_own_belief(self, belief, agent, action, observation):
        """Add the result of one lab."""
        chances = self.chances(agent, action)
        return belief + jnp.log(jnp.where(observation > 0, chances, 1 - chances))

    def update_belief(self, belief, actions, observation):
        """Add the results of a round."""
        for agent in range(self.agents):
            belief = self.update_own_belief(belief, jnp.int32(agent), actions[agent], observation[agent])
        return belief

    def log_posterior(self, belief):
        """The likelihood, since the prior is uniform."""
        return jax.nn.log_softmax(belief)
