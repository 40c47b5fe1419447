"""Scores of actors in stored histories, with masked choices."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from icmape.learning.config import Config
from icmape.networks import Actors
from icmape.play.rollout import Histories


def joint_scores(config: Config, actors: Actors, seen: Histories) -> Float[Array, "batch rounds agents choices"]:
    """Scores of all agents at every round; masked choices get -1e9."""
    scores = jnp.swapaxes(jax.vmap(actors.unroll)(seen.local), 1, 2)
    return jnp.where(choices(config, seen), scores, -1e9)


def choices(config: Config, seen: Histories) -> Bool[Array, "batch rounds agents choices"]:
    """The mask of choices: the learner action mask, and STOP if it is learned and heard."""
    stop = seen.stop_mask & (config.stopping == "learned")
    return jnp.concatenate([seen.action_mask, stop[..., None]], axis=-1)


def chosen(
    scores: Float[Array, "batch rounds agents choices"], actions: Int[Array, "batch rounds agents"]
) -> Float[Array, "batch rounds agents"]:
    """The scores of the actions."""
    return jnp.take_along_axis(scores, actions[..., None], axis=-1)[..., 0]
