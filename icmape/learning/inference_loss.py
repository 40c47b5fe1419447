"""The loss of the inference network, and posteriors of stored episodes."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from icmape.learning.config import Config
from icmape.learning.optimize import Optimizer, descend
from icmape.learning.returns import masked_mean, weighted_mean
from icmape.networks import InferenceNetwork
from icmape.play.devices import in_batches
from icmape.play.inference import ExactInference
from icmape.play.rollout import Episode, histories, memories_at
from icmape.problem import Features, Problem
from icmape.problem.check import tree_bytes

AT_ONCE = 512  # episodes per batch of maps, without gradients
SMALL_BELIEF = 2**16  # bytes of a belief up to which exact Bayes is cheap enough for rewards


def inference_loss(
    problem: Problem,
    inference: InferenceNetwork,
    team: Features,
    episode: Episode,
    weight: Float[Array, "batch rounds"] | None = None,
    teacher: Float[Array, "batch rounds ..."] | None = None,
) -> Float[Array, ""]:
    """Mean of -log p(H* | D_t) over all prefixes up to the stop of all episodes, optionally weighted.

    With a `teacher`, the exact posterior at every prefix, the loss is the divergence from it. Both losses have the same
    expected gradient, but that of the sampled truth is far noisier.
    """
    space = problem.hypotheses

    def from_truth(team: Features, episode: Episode) -> Float[Array, "rounds"]:
        return -jax.vmap(space.log_likelihood, in_axes=(0, None))(inference.unroll(team), episode.hypothesis)

    def from_teacher(team: Features, exact: Float[Array, "rounds ..."]) -> Float[Array, "rounds"]:
        return jax.vmap(space.divergence)(exact, inference.unroll(team))

    losses = jax.vmap(from_truth)(team, episode) if teacher is None else jax.vmap(from_teacher)(team, teacher)
    exists = jnp.arange(losses.shape[1])[None] <= episode.stop[:, None]
    return masked_mean(losses, exists) if weight is None else weighted_mean(losses, weight)


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
    """One gradient step of the inference network, towards exact Bayes if rewards come from it."""
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
    """Scores of the network at the stop of an episode."""
    if inference.reads_history:
        return inference.unroll(histories(problem, episode).team)[episode.stop]
    memories = memories_at(problem, episode, episode.stop)
    return inference.step(inference.start(), problem.team_features(memories))[1]


class Judged(NamedTuple):
    """Confidence and correctness of a posterior at every prefix of many episodes."""

    confidence: Float[Array, "batch rounds"]  # r_t
    log_truth: Float[Array, "batch rounds"]  # log p(H* | D_t)
    correct: Bool[Array, "batch rounds"]


def judge(problem: Problem, inference: InferenceNetwork, team: Features, episode: Episode) -> Judged:
    """Judge every prefix by a network."""

    def judge_episode(row: tuple[Features, Episode]) -> Judged:
        return _judged(problem, inference.unroll(row[0]), row[1])

    if inference.reads_history:
        return jax.vmap(judge_episode)((team, episode))
    # the activations of a network take many times the memory of the map
    return in_batches(judge_episode, (team, episode), AT_ONCE)


def judge_exactly(problem: Problem, episode: Episode) -> Judged:
    """Judge every prefix up to the stop by exact Bayes."""
    return jax.vmap(partial(_judged, problem))(exact_scores(problem, episode), episode)


def exact_scores(problem: Problem, episode: Episode) -> Float[Array, "batch rounds ..."]:
    """Scores of the exact posterior at every prefix up to the stop; later rows are 0."""
    return jax.vmap(lambda e: ExactInference().unroll(problem, e))(episode)


def _judged(problem: Problem, scores: Float[Array, "rounds ..."], episode: Episode) -> Judged:
    space, truth = problem.hypotheses, episode.hypothesis
    return jax.vmap(
        lambda s: Judged(space.confidence(s), space.log_truth(s, truth), space.correct(space.decide(s), truth))
    )(scores)


def judge_for_reward(
    problem: Problem, config: Config, inference: InferenceNetwork, team: Features, episode: Episode
) -> Judged:
    """Judge every prefix by the posterior that rewards come from."""
    if learns_from_exact(problem, config):
        return judge_exactly(problem, episode)
    return judge(problem, inference, team, episode)


def learns_from_exact(problem: Problem, config: Config) -> bool:
    """Whether rewards come from exact Bayes: as set, or (auto) if the problem has it with a small belief."""
    if config.posterior != "auto" or problem.posterior != "exact":
        return config.posterior == "exact"
    return tree_bytes(jax.eval_shape(problem.belief)) <= SMALL_BELIEF
