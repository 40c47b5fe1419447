"""Training the inference network, and the confidence it gives."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from icmape.learning.config import Config
from icmape.learning.optimize import Optimizer, descend
from icmape.learning.returns import masked_mean, weighted_mean
from icmape.networks import InferenceNetwork
from icmape.play.inference import ExactInference
from icmape.play.rollout import Episode, histories, memories_at
from icmape.problem import Features, Problem

AT_ONCE = 512  # episodes whose maps are read together where no gradient is taken
SMALL_BELIEF = 2**16  # bytes of a belief up to which exact Bayes costs less than it helps


def inference_loss(
    problem: Problem,
    inference: InferenceNetwork,
    team: Features,
    episode: Episode,
    weight: Float[Array, "batch rounds"] | None = None,
    teacher: Float[Array, "batch rounds ..."] | None = None,
) -> Float[Array, ""]:
    """Mean of -log p(H* | D_t) over every prefix of every episode, the one at the stop included; or a weighted one.

    A `teacher` is the exact posterior at every prefix: what is lost is then the divergence from it. In the mean both
    have the same gradient, but the truth that was drawn is a far noisier one.
    """
    space = problem.hypotheses

    def from_truth(team: Features, episode: Episode) -> Float[Array, "rounds"]:
        return -jax.vmap(space.log_likelihood, in_axes=(0, None))(inference.unroll(team), episode.hypothesis)

    def from_teacher(team: Features, exact: Float[Array, "rounds ..."]) -> Float[Array, "rounds"]:
        return jax.vmap(space.divergence)(exact, inference.unroll(team))

    lost = jax.vmap(from_truth)(team, episode) if teacher is None else jax.vmap(from_teacher)(team, teacher)
    exists = jnp.arange(lost.shape[1])[None] <= episode.stop[:, None]
    return masked_mean(lost, exists) if weight is None else weighted_mean(lost, weight)


def inference_step(
    problem: Problem,
    config: Config,
    optimizer: Optimizer,
    learner: Any,
    team: Features,
    episode: Episode,
    rate: Float[Array, ""],
    weight: Float[Array, "batch rounds"] | None = None,
) -> tuple[Any, Float[Array, ""]]:
    """One gradient step of a learner's inference network, towards exact Bayes where rewards come from that."""
    teacher = exact_scores(problem, episode) if learns_from_exact(problem, config) else None
    inference, moments, loss = descend(
        optimizer,
        lambda inference: inference_loss(problem, inference, team, episode, weight, teacher),
        learner.inference,
        learner.inference_moments,
        config.inference_lr * rate,
    )
    return learner._replace(inference=inference, inference_moments=moments), loss


def scores_at_stop(problem: Problem, inference: InferenceNetwork, episode: Episode) -> Float[Array, "..."]:
    """What the network says when an episode ends."""
    if inference.reads_history:
        return inference.unroll(histories(problem, episode).team)[episode.stop]
    memories = memories_at(problem, episode, episode.stop)
    return inference.step(inference.start(), problem.team_features(memories))[1]


class Judged(NamedTuple):
    """What a posterior makes of every prefix of many episodes."""

    confidence: Float[Array, "batch rounds"]  # r_t
    log_truth: Float[Array, "batch rounds"]  # log p(H* | D_t)
    correct: Bool[Array, "batch rounds"]


def judge(problem: Problem, inference: InferenceNetwork, team: Features, episode: Episode) -> Judged:
    """Every prefix by a network."""

    def one(row: tuple[Features, Episode]) -> Judged:
        return _judged(problem, inference.unroll(row[0]), row[1])

    if inference.reads_history:
        return jax.vmap(one)((team, episode))
    # what a network makes of a map takes many times the memory of the map
    return jax.lax.map(one, (team, episode), batch_size=AT_ONCE)


def judge_exactly(problem: Problem, episode: Episode) -> Judged:
    """Every prefix up to the stop by Bayes' rule."""
    return jax.vmap(partial(_judged, problem))(exact_scores(problem, episode), episode)


def exact_scores(problem: Problem, episode: Episode) -> Float[Array, "batch rounds ..."]:
    """The exact posterior at every prefix up to the stop; rows behind it are 0."""
    return jax.vmap(lambda e: ExactInference().unroll(problem, e))(episode)


def _judged(problem: Problem, scores: Float[Array, "rounds ..."], episode: Episode) -> Judged:
    space, truth = problem.hypotheses, episode.hypothesis
    return jax.vmap(
        lambda s: Judged(space.confidence(s), space.log_truth(s, truth), space.correct(space.decide(s), truth))
    )(scores)


def judge_for_reward(
    problem: Problem, config: Config, inference: InferenceNetwork, team: Features, episode: Episode
) -> Judged:
    """Every prefix by the posterior whose confidence is paid."""
    if learns_from_exact(problem, config):
        return judge_exactly(problem, episode)
    return judge(problem, inference, team, episode)


def learns_from_exact(problem: Problem, config: Config) -> bool:
    """Whether rewards come from exact Bayes: as set, or where that is at hand and its belief is small."""
    if config.posterior != "auto" or problem.posterior != "exact":
        return config.posterior == "exact"
    belief = jax.tree.leaves(jax.eval_shape(problem.belief))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in belief) <= SMALL_BELIEF
