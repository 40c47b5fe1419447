"""One stored episode with rewards written down: small enough to work targets and losses out by hand."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from icmape.learning.off_policy import Replayed
from icmape.learning.returns import Rewards
from icmape.networks import Actors
from icmape.play.rollout import Episode, histories
from icmape.zoo.bandit.bandit import Bandit

PROBLEM = Bandit(arms=2, players=2, horizon=4)
ARM_0, ARM_1, STOP = 0, 1, 2
GOING_ON, STOPPING = [0.1, 0.2, 0.3, 9.0], [0.01, 0.02, 0.03, 0.05]


@jax.jit
def _replayed(stop: jax.Array, explored: jax.Array, stopping: jax.Array, problem: Bandit) -> Replayed:
    actions = jnp.array([[[ARM_0, ARM_0], [ARM_1, ARM_1], [ARM_0, ARM_1], [STOP, STOP]]], jnp.int8)
    actions = actions[..., : problem.agents]
    nothing = jnp.zeros_like(actions)
    episode = Episode(actions, nothing, explored[None], stop[None], jnp.zeros((1, 2), jnp.int8), jnp.ones(1, bool))
    seen = jax.vmap(partial(histories, problem))(episode)
    return Replayed(episode, seen, Rewards(jnp.array([GOING_ON]), stopping[None]), jnp.zeros((1, 4)))


def batch(
    stop: int = 3,
    explored: tuple[bool, ...] = (False,) * 4,
    stopping: list[float] = STOPPING,
    problem: Bandit = PROBLEM,
) -> Replayed:
    """Both players on arm 0, then on arm 1, then one on each, all unpaid, with the rewards above."""
    return _replayed(jnp.int32(stop), jnp.asarray(explored), jnp.asarray(stopping), problem)


def constant_outputs(actors: Actors, outputs: Any) -> Actors:
    """Actors whose outputs are the same whatever they see: for all agents, or one row each where weights are own."""
    quiet = eqx.tree_at(lambda a: (a.actor.head.weight, a.actor.schedule), actors, replace_fn=jnp.zeros_like)
    return eqx.tree_at(lambda a: a.actor.head.bias, quiet, jnp.asarray(outputs, jnp.float32))
