"""Soft stops: stopping as a probability, shared by PPO and TD3.

Episodes continue past every STOP, so that the value of continuing is observed. Losses and metrics are expectations over
stopping times, so that no STOP needs to be sampled.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from icmape.learning.algorithms import Scalar, SoftStops
from icmape.learning.config import Config
from icmape.learning.inference_loss import Judged, judge, learns_from_exact
from icmape.learning.off_policy import Losses, Turn
from icmape.learning.optimize import progress_at
from icmape.learning.returns import Soft, episode_rewards, soft_stops
from icmape.networks import InferenceNetwork
from icmape.play.rollout import Drawn, Episode, Histories
from icmape.problem import Problem

FIRST_SCORES = 0.1  # initial scale of the last layer of the actors: nearly equal scores at first
LOG_WEIGHT = 0.15  # of log p(H*), which scales it to the range of a probability
LEAST_LOG = -20.0  # lower bound of log p(H*)
MOST_ENDS = 0.5  # limit of the probability of a random termination in a round, for short plans


class Weights(NamedTuple):
    """Coefficients of the actor loss that change during training."""

    entropy: Float[Array, ""]
    temperature: Float[Array, ""]  # of stops
    odds: Float[Array, ""]  # log-odds of continuing under a constant rate of one stop per plan length


def settings(config: Config) -> SoftStops:
    """The settings that these algorithms share."""
    assert isinstance(config.algorithm, SoftStops)  # only these algorithms call it
    return config.algorithm


def noise(config: Config, progress: Float[Array, ""], greedy: Bool[Array, "worlds"]) -> Drawn:
    """In worlds that are not greedy, actions are sampled from the policy and episodes continue past every STOP."""
    return Drawn(greedy, jnp.where(greedy, 1.0, 0.0))


def weights_at(problem: Problem, config: Config, turn: Turn) -> Weights:
    """The coefficients at this point of training."""
    algorithm, progress = settings(config), progress_at(config, turn.iteration)
    entropy = algorithm.ent_coef * (algorithm.ent_coef_final / algorithm.ent_coef) ** progress
    temperature = algorithm.stop_kl_coef * softness(config, turn)
    # a rate of 1 / (agents · length) per agent makes the team stop about once in the length of the plan
    return Weights(entropy, temperature, jnp.log(jnp.maximum(problem.agents * turn.length - 1.0, 1.0)))


def softness(config: Config, turn: Turn) -> Float[Array, ""]:
    """A factor that falls from 1 at the start of training to 0, where stops are no longer regularized."""
    return jnp.maximum(1.0 - progress_at(config, turn.iteration) / settings(config).stop_anneal_fraction, 0.0)


def chance_ends(config: Config, turn: Turn) -> Float[Array, ""]:
    """The probability of a random termination in a round."""
    return jnp.minimum(settings(config).random_terminations * softness(config, turn) / turn.length, MOST_ENDS)


def split_choice(
    scores: Float[Array, "batch rounds agents choices"],
) -> tuple[Float[Array, "batch rounds agents actions"], Float[Array, "batch rounds agents"]]:
    """Log-probabilities of the actions given that an agent continues, and the probability that it continues.

    That probability is 1/2 where STOP has the score of the best action, the decision boundary of the greedy agent.
    """
    return jax.nn.log_softmax(scores[..., :-1]), jax.nn.sigmoid(lead_of(scores))


def lead_of(scores: Float[Array, "batch rounds agents choices"]) -> Float[Array, "batch rounds agents"]:
    """The log-odds of continuing: the score of the best action (without gradient) minus that of STOP."""
    return jax.lax.stop_gradient(jnp.max(scores[..., :-1], axis=-1)) - scores[..., -1]


def stops_of(
    config: Config,
    going: Float[Array, "batch rounds agents"],
    confidence: Float[Array, "batch rounds"],
    chance: Scalar = 0.0,
) -> Soft:
    """When episodes end: by the stops of agents or the threshold 1-δ on confidence, and at random."""
    if config.stopping == "threshold":
        going = (confidence < 1.0 - config.delta).astype(jnp.float32)[..., None]
    return jax.lax.stop_gradient(soft_stops(going, chance))


def deciding(
    going: Float[Array, "batch rounds agents"], soft: Soft, least: Scalar
) -> Float[Array, "batch rounds agents"]:
    """The probability that the stop of an agent is decisive: the round is reached and the others continue."""
    itself = jnp.eye(going.shape[-1], dtype=bool)[None, None]
    others = jnp.prod(jnp.where(itself, 1.0, going[..., None, :]), axis=-1)
    return jnp.maximum(soft.reached[..., None] * others, least)


def stop_divergence(lead: Float[Array, "*shape"], odds: Float[Array, ""]) -> Float[Array, "*shape"]:
    """KL divergence between Bernoulli distributions with log-odds of continuing `lead` and `odds`, up to a constant."""
    going = jax.nn.sigmoid(lead)
    entropy = going * jax.nn.softplus(-lead) + (1.0 - going) * jax.nn.softplus(lead)
    return (1.0 - going) * odds - entropy


def potential_of(config: Config, judged: Judged, progress: Float[Array, ""]) -> Float[Array, "batch rounds"]:
    """The potential for reward shaping: at first mostly the probability of the truth, later the confidence."""
    algorithm = settings(config)
    share = algorithm.truth_weight * jnp.maximum(1.0 - 1.5 * progress, 0.0)
    weight, log_truth = algorithm.log_truth_weight, jnp.maximum(judged.log_truth, LEAST_LOG)
    truth = (1.0 - weight) * jnp.exp(judged.log_truth) + weight * LOG_WEIGHT * log_truth
    return (1.0 - share) * judged.confidence + share * truth


def lowest_potential(config: Config, progress: Float[Array, ""]) -> Float[Array, ""]:
    """The lower bound of the potential."""
    algorithm = settings(config)
    share = algorithm.truth_weight * jnp.maximum(1.0 - 1.5 * progress, 0.0)
    return share * algorithm.log_truth_weight * LOG_WEIGHT * LEAST_LOG


def seen_at_stop(
    problem: Problem, config: Config, inference: InferenceNetwork, episode: Episode, seen: Histories, judged: Judged
) -> Float[Array, "batch rounds"]:
    """The confidence that a threshold compares: that of the network, even if rewards come from exact Bayes."""
    if config.stopping == "threshold" and learns_from_exact(problem, config):
        return judge(problem, inference, seen.team, episode).confidence
    return judged.confidence


def rewards_of(
    config: Config, potential: Float[Array, "batch rounds"], episode: Episode, step_cost: Float[Array, ""]
) -> Float[Array, "batch rounds"]:
    """Rewards of continuing in each round, relative to stopping; 0 in the last round."""
    paid = jax.vmap(lambda r, p: episode_rewards(r, p, step_cost, config.delta, shaped=True))(potential, episode.payoff)
    return paid.going_on.at[:, -1].set(0.0)


def exists(rounds: int) -> Float[Array, "1 rounds"]:
    """1 in rounds with a choice, 0 in the last round."""
    return (jnp.arange(rounds) < rounds - 1)[None].astype(jnp.float32)


def measured(
    problem: Problem,
    config: Config,
    inference: InferenceNetwork,
    episode: Episode,
    seen: Histories,
    judged: Judged,
    soft: Soft,
) -> Losses:
    """Accuracy and confidence at the stop, τ and the fraction of forced stops, in expectation over stopping times."""
    if learns_from_exact(problem, config):  # the team answers with the network
        judged = judge(problem, inference, seen.team, episode)
    numbers = jnp.arange(1, soft.stops.shape[1] + 1).astype(jnp.float32)[None]

    def at_stop(values: Float[Array, "batch rounds"]) -> Float[Array, ""]:
        return jnp.mean(jnp.sum(soft.stops * values, axis=1))

    return {
        "accuracy": at_stop(judged.correct.astype(jnp.float32)),
        "confidence": at_stop(judged.confidence),
        "tau": at_stop(jnp.broadcast_to(numbers, soft.stops.shape)),
        "forced": jnp.mean(soft.reached[:, -1]),
    }
