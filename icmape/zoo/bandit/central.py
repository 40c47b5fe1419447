"""Centralized baseline: the allocation of players with the least expected entropy one round ahead."""

from math import comb
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jaxtyping import Array, Float, Key

from icmape.play.inference import ExactInference
from icmape.play.policy import Round
from icmape.zoo.bandit.allocation import actions_of, allocate
from icmape.zoo.bandit.bandit import Bandit, BanditBelief


class CentralGreedy(eqx.Module):
    """Team scope: reads all payoffs and minimises the expected entropy of the next exact posterior.

    Arms are independent given their loads, so entropies add up over arms and the best of all joint actions is a
    knapsack. Never stops by itself.
    """

    problem: Bandit
    kind: Literal["central-greedy"] = eqx.field(static=True, default="central-greedy")

    def start(self) -> BanditBelief:
        """The prior."""
        return self.problem.belief()

    def decide(
        self, state: BanditBelief, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[BanditBelief, Float[Array, "agents choices"]]:
        """The best allocation, lower-numbered players on lower-numbered arms."""
        belief, _ = ExactInference().step(self.problem, state, seen)
        loads = allocate(-expected_entropy(self.problem, belief))
        return belief, jax.nn.one_hot(actions_of(loads, self.problem.players), self.problem.arms + 1)


def expected_entropy(problem: Bandit, belief: BanditBelief) -> Float[Array, "arms loads"]:
    """Expected entropy (nats) of each arm's posterior after one more round with 0..N players on it."""
    joint = outcomes(problem, belief)
    marginal = jnp.sum(joint, axis=-1)
    return jnp.sum(xlogy(marginal, marginal), axis=-1) - jnp.sum(xlogy(joint, joint), axis=(-2, -1))


def outcomes(problem: Bandit, belief: BanditBelief) -> Float[Array, "arms loads paid capacities"]:
    """p(number paid, C = c | D) of each arm after one more round with 0..N players on it."""
    players = problem.players
    successes = jnp.cumsum(belief.successes, axis=1)[:, None, None, :]
    failures = jnp.cumsum(belief.failures, axis=1)[:, None, None, :]
    load = jnp.arange(players + 1)[None, :, None, None]
    paid = jnp.arange(players + 1)[None, None, :, None]
    serves = jnp.arange(1, players + 1)[None, None, None, :] >= load
    after = problem.log_evidence[successes + jnp.where(serves, paid, 0), failures + jnp.where(serves, load - paid, 0)]
    before = problem.log_evidence[successes, failures]
    possible = (paid <= load) & (serves | (paid == 0))
    ways = jnp.where(serves, _ways(players)[None, :, :, None], 1.0)  # an overloaded arm has one outcome
    posterior = jnp.exp(problem.log_posterior(belief))[:, None, None, :]
    return jnp.where(possible & (posterior > 0), posterior * ways * jnp.exp(after - before), 0.0)


def _ways(players: int) -> Float[Array, "loads paid"]:
    table = [[comb(load, paid) for paid in range(players + 1)] for load in range(players + 1)]
    return jnp.asarray(np.array(table, np.float64), jnp.float32)
