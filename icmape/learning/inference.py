"""Training the inference network, and the confidence it gives."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from icmape.learning.config import Config
from icmape.learning.optimize import Optimizer, descend
from icmape.learning.returns import masked_mean
from icmape.learning.rollout import Episode, histories, memories_at
from icmape.networks import InferenceNetwork
from icmape.problems import Problem, View

AT_ONCE = 512  # episodes whose maps are read together where no gradient is taken


def inference_loss(problem: Problem, inference: InferenceNetwork, team: View, episode: Episode) -> Float[Array, ""]:
    """Mean of -log p(H* | D_t) over every prefix of every episode, the one at the stop included."""

    def one(team: View, episode: Episode) -> Float[Array, "rounds"]:
        scores = inference.unroll(team)
        return jax.vmap(problem.hypotheses.log_likelihood, in_axes=(0, None))(scores, episode.hypothesis)

    likelihood = jax.vmap(one)(team, episode)
    exists = jnp.arange(likelihood.shape[1])[None] <= episode.stop[:, None]
    return -masked_mean(likelihood, exists)


def inference_step(
    problem: Problem,
    config: Config,
    optimizer: Optimizer,
    learner: Any,
    team: View,
    episode: Episode,
    rate: Float[Array, ""],
) -> tuple[Any, Float[Array, ""]]:
    """One gradient step of a learner's inference network."""
    inference, moments, loss = descend(
        optimizer,
        lambda inference: inference_loss(problem, inference, team, episode),
        learner.inference,
        learner.inference_moments,
        config.inference_rate * rate,
    )
    return learner._replace(inference=inference, inference_moments=moments), loss


def scores_at_stop(problem: Problem, inference: InferenceNetwork, episode: Episode) -> Float[Array, "..."]:
    """What the network says when an episode ends."""
    if inference.reads_history:
        return inference.unroll(histories(problem, episode).team)[episode.stop]
    memories = memories_at(problem, episode, episode.stop)
    return inference.step(inference.start(), problem.team_view(memories))[1]


def posterior_confidence(problem: Problem, inference: InferenceNetwork, team: View) -> Float[Array, "batch rounds"]:
    """r_t at every prefix of every episode."""
    return jax.vmap(lambda views: jax.vmap(problem.hypotheses.confidence)(inference.unroll(views)))(team)


def posterior_potential(
    problem: Problem, inference: InferenceNetwork, team: View, episode: Episode
) -> tuple[Float[Array, "batch rounds"], Float[Array, "batch rounds"]]:
    """r_t, and log p(H* | D_t), at every prefix of every episode."""

    def one(views: View, truth: Integer[Array, "..."]) -> tuple[Float[Array, "rounds"], Float[Array, "rounds"]]:
        scores, space = inference.unroll(views), problem.hypotheses
        return jax.vmap(space.confidence)(scores), jax.vmap(lambda s: space.log_truth(s, truth))(scores)

    if inference.reads_history:
        return jax.vmap(one)(team, episode.hypothesis)
    # what a network makes of a map takes many times the memory of the map
    return jax.lax.map(lambda row: one(*row), (team, episode.hypothesis), batch_size=AT_ONCE)
