"""A problem small enough to be solved exactly: which of two coins is being tossed?"""

import itertools
from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int8

from icmape.problem import Categorical, Factored, Features, Problem


class CoinWorld(NamedTuple):
    hypothesis: Int8[Array, ""]


class Coins(Problem):
    """The coin shows heads with probability `low` (H = 0) or `high` (H = 1); each agent tosses it once a round.

    A reading is 1 (heads) or -1 (tails), so that a stored 0 is padding. Memory and view are counts.
    """

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Categorical
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)

    def __init__(self, agents: int = 1, horizon: int = 8, low: float = 0.2, high: float = 0.8, actions: int = 1):
        self.agents, self.actions, self.horizon = agents, actions, horizon
        self.hypotheses = Categorical(2)
        self.low, self.high = low, high

    def sample(self, *, key):
        return CoinWorld(jax.random.randint(key, (), 0, 2).astype(jnp.int8))

    def start(self, world, *, key):
        return (), jnp.zeros(self.agents, jnp.int8)

    def step(self, world, state, actions, *, key):
        heads = jax.random.uniform(key, (self.agents,)) < jnp.where(world.hypothesis == 1, self.high, self.low)
        return state, jnp.where(heads, 1, -1).astype(jnp.int8)

    def init_memory(self, agent, observation):
        return jnp.zeros(2, jnp.int32)

    def update_memory(self, memory, agent, action, observation):
        return memory + jnp.stack([observation > 0, observation < 0]).astype(jnp.int32)

    def features(self, memory):
        return Features(jax.nn.one_hot(jnp.clip(memory[0] - memory[1], -3, 3) + 3, 7))

    @property
    def posterior(self):
        return "exact"

    def belief(self, first=None):
        return jnp.zeros(2, jnp.int32)

    def update_belief(self, belief, actions, observation):
        return belief + jnp.stack([jnp.sum(observation > 0), jnp.sum(observation < 0)]).astype(jnp.int32)

    def log_posterior(self, belief):
        heads, tails = belief.astype(jnp.float32)
        chances = jnp.array([self.low, self.high])
        return jax.nn.log_softmax(heads * jnp.log(chances) + tails * jnp.log1p(-chances))


class Solution(NamedTuple):
    """What dynamic programming over (heads, tails) says for one agent."""

    value: float  # of playing on from nothing
    stops: dict[tuple[int, int], bool]  # whether stopping now is best
    margin: dict[tuple[int, int], float]  # by how much


def chances(problem: Coins, heads: int, tails: int) -> tuple[float, float]:
    """Probability of H = 1 and of heads next, after so many of each, in float64."""
    likelihood = [p**heads * (1 - p) ** tails for p in (problem.low, problem.high)]
    belief = likelihood[1] / sum(likelihood)
    return belief, (1 - belief) * problem.low + belief * problem.high


def solve(problem: Coins, cost: float, delta: float, *, shaped: bool) -> Solution:
    """Backward induction over all counts, written apart from icmape's returns.

    Unshaped: -ζ a round, r - (1-δ) at the stop. Shaped: r' - r - ζ a round, 0 at the stop.
    """
    stops, margin = {}, {}

    def confidence(heads: int, tails: int) -> float:
        belief, _ = chances(problem, heads, tails)
        return max(belief, 1 - belief)

    @cache
    def value(heads: int, tails: int) -> float:
        here = confidence(heads, tails)
        stopping = 0.0 if shaped else here - (1 - delta)
        if heads + tails == problem.horizon - 1:
            return stopping
        _, up = chances(problem, heads, tails)
        going_on = 0.0
        for chance, after in ((up, (heads + 1, tails)), (1 - up, (heads, tails + 1))):
            paid = confidence(*after) - here - cost if shaped else -cost
            going_on += chance * (paid + value(*after))
        stops[heads, tails] = stopping >= going_on
        margin[heads, tails] = abs(stopping - going_on)
        return max(stopping, going_on)

    return Solution(value(0, 0), stops, margin)


def every_history(problem: Coins) -> tuple[np.ndarray, np.ndarray]:
    """All sequences of tosses of one agent up to the horizon, and the prior probability of each."""
    tosses = np.array(list(itertools.product((1, -1), repeat=problem.horizon - 1)), np.int8)
    heads, tails = (tosses > 0).sum(1), (tosses < 0).sum(1)
    probability = sum(0.5 * p**heads * (1 - p) ** tails for p in (problem.low, problem.high))
    return tosses, probability


class Bits(Problem):
    """Two bits, each agent reads one of them a round: correctly with probability 0.95 (bit 0) or 0.85 (bit 1)."""

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Factored

    def __init__(self, agents: int = 2, horizon: int = 8):
        self.agents, self.actions, self.horizon = agents, 2, horizon
        self.hypotheses = Factored(2, 2)

    def sample(self, *, key):
        return CoinWorld(jax.random.randint(key, (2,), 0, 2).astype(jnp.int8))

    def start(self, world, *, key):
        return (), jnp.zeros(self.agents, jnp.int8)

    def step(self, world, state, actions, *, key):
        wrong = jax.random.uniform(key, (self.agents,)) > jnp.array([0.95, 0.85])[actions]
        return state, jnp.where(wrong, 1 - world.hypothesis[actions], world.hypothesis[actions])

    def init_memory(self, agent, observation):
        return jnp.zeros(4)

    def update_memory(self, memory, agent, action, observation):
        return jax.nn.one_hot(2 * action.astype(jnp.int32) + observation.astype(jnp.int32), 4)

    def features(self, memory):
        return Features(memory)

    @property
    def posterior(self):
        return "exact"

    def belief(self, first=None):
        return jnp.zeros((2, 2))

    def update_belief(self, belief, actions, observation):
        agents = jnp.arange(self.agents)
        return belief + jnp.sum(jax.vmap(self._evidence)(agents, actions, observation), axis=0)

    def update_own_belief(self, belief, agent, action, observation):
        return belief + self._evidence(agent, action, observation)

    def _evidence(self, agent, action, observation):
        right = jnp.array([0.95, 0.85])[action]
        logs = jnp.where(jnp.arange(2) == observation.astype(jnp.int32), jnp.log(right), jnp.log1p(-right))
        return jax.nn.one_hot(action, 2)[:, None] * logs[None]

    def log_posterior(self, belief):
        return jax.nn.log_softmax(belief, axis=1)
