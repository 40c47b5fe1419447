"""Expected accuracy of a schedule, now and after more of its rounds.

In closed form, because the most probable capacity of an arm is the largest load that ever paid (see
`accuracy_by_capacity`). Given some readings, the team is right about C = c if c = 1, if load c has paid already, or if
one of the m unseen readings at load c (by other players, or in later rounds) pays.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer

from icmape.zoo.bandit.bandit import Bandit, BanditBelief

AHEAD = (1, 2, 3, 4, 6, 8, 12, 16)  # numbers of further rounds that are considered


def chance_right(problem: Bandit, seen: BanditBelief, unseen: Int[Array, "arms players"]) -> Float[Array, ""]:
    """Probability that the team is right, given some readings and the number of others, unseen, at each load."""
    successes, failures = jnp.cumsum(seen.successes, axis=1), jnp.cumsum(seen.failures, axis=1)
    none_pays = jnp.exp(problem.log_evidence[successes, failures + unseen] - problem.log_evidence[successes, failures])
    sure = (seen.successes > 0) | (jnp.arange(problem.players) == 0)[None, :]
    capacities = jnp.exp(problem.log_posterior(seen))
    return jnp.prod(jnp.sum(capacities * jnp.where(sure, 1.0, 1 - none_pays), axis=1))


def gain_per_round(
    problem: Bandit, seen: BanditBelief, unseen: Int[Array, "rounds arms players"], number: Integer[Array, ""]
) -> Float[Array, ""]:
    """Largest gain in expected accuracy per round, over several numbers of further rounds.

    `unseen` counts the unseen readings before each round of the schedule, and after its last.
    """
    ahead = jnp.asarray((0, *AHEAD))
    until = jnp.minimum(number + ahead, unseen.shape[0] - 1)
    chance = jax.vmap(lambda index: chance_right(problem, seen, unseen[index]))(until)
    return jnp.max((chance[1:] - chance[0]) / ahead[1:].astype(chance.dtype))


def planned_readings(problem: Bandit, table: Int[Array, "rounds players"]) -> Int[Array, "rounds+1 arms players"]:
    """Readings of a schedule at each arm and load: before each round, and in total."""
    loads = jax.vmap(problem.loads)(table)
    return _before(_at_load(problem, table) * loads[:, :, None])


def own_readings(
    problem: Bandit, table: Int[Array, "rounds players"], agent: Integer[Array, ""]
) -> Int[Array, "rounds+1 arms players"]:
    """The same for the readings of one player."""
    own_arm = jax.nn.one_hot(table[:, agent], problem.arms, dtype=jnp.int32)
    return _before(_at_load(problem, table) * own_arm[:, :, None])


def _at_load(problem: Bandit, table: Int[Array, "rounds players"]) -> Int[Array, "rounds arms players"]:
    return jax.nn.one_hot(jax.vmap(problem.loads)(table) - 1, problem.players, dtype=jnp.int32)


def _before(counts: Int[Array, "rounds arms players"]) -> Int[Array, "rounds+1 arms players"]:
    return jnp.concatenate([jnp.zeros_like(counts[:1]), jnp.cumsum(counts, axis=0)])
