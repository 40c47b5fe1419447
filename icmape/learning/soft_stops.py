"""Stops as chances: what actors with soft stops (PPO, TD3) share.

Episodes are played past every STOP, so that what lies behind one stays known. Who stops when is averaged over, and no
STOP need be drawn to learn from it.
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

FIRST_SCORES = 0.1  # share of the usual weights that the actors' last layer starts with: all actions alike at first
LOG_WEIGHT = 0.15  # of log p(H*), which makes it about as large as a probability
LEAST_LOG = -20.0  # what is impossible counts as no less likely than this
MOST_ENDS = 0.5  # chance, at most, that a round is the last by chance: short plans would leave nothing to play


class Weights(NamedTuple):
    """What changes in the actors' loss during training."""

    entropy: Float[Array, ""]
    temperature: Float[Array, ""]  # of stops
    odds: Float[Array, ""]  # log-odds of going on, of a team that stops once in the plan's length, whatever it sees


def settings(config: Config) -> SoftStops:
    """What such algorithms have in common."""
    assert isinstance(config.algorithm, SoftStops)  # only they come here
    return config.algorithm


def noise(config: Config, progress: Float[Array, ""], greedy: Bool[Array, "worlds"]) -> Drawn:
    """Worlds that are not greedy draw every action from the actors' own probabilities and go on past every STOP."""
    return Drawn(greedy, jnp.where(greedy, 1.0, 0.0))


def weights_at(problem: Problem, config: Config, turn: Turn) -> Weights:
    """The weights at this point of training."""
    it, progress = settings(config), progress_at(config, turn.iteration)
    entropy = it.ent_coef * (it.ent_coef_final / it.ent_coef) ** progress
    temperature = it.stop_kl_coef * softness(config, turn)
    # every agent stops once in `agents` times the plan's length: the team about once in that length
    return Weights(entropy, temperature, jnp.log(jnp.maximum(problem.agents * turn.length - 1.0, 1.0)))


def softness(config: Config, turn: Turn) -> Float[Array, ""]:
    """From 1 at the start of training to 0 where stops may be as sure as they like."""
    return jnp.maximum(1.0 - progress_at(config, turn.iteration) / settings(config).stop_anneal_fraction, 0.0)


def chance_ends(config: Config, turn: Turn) -> Float[Array, ""]:
    """The chance that a round is the last whatever the agents want."""
    return jnp.minimum(settings(config).random_terminations * softness(config, turn) / turn.length, MOST_ENDS)


def split_choice(
    scores: Float[Array, "batch rounds agents choices"],
) -> tuple[Float[Array, "batch rounds agents actions"], Float[Array, "batch rounds agents"]]:
    """Log-probabilities of the actions given that an agent goes on, and the probability that it does.

    It goes on with odds of one where STOP scores as much as its best action: there the greedy agent is undecided too.
    """
    return jax.nn.log_softmax(scores[..., :-1]), jax.nn.sigmoid(lead_of(scores))


def lead_of(scores: Float[Array, "batch rounds agents choices"]) -> Float[Array, "batch rounds agents"]:
    """The lead of the best action over STOP, as a function of STOP's score: the log-odds of going on."""
    return jax.lax.stop_gradient(jnp.max(scores[..., :-1], axis=-1)) - scores[..., -1]


def stops_of(
    config: Config,
    going: Float[Array, "batch rounds agents"],
    confidence: Float[Array, "batch rounds"],
    chance: Scalar = 0.0,
) -> Soft:
    """When episodes end: by the agents' stops, or where the confidence reaches 1-δ; and by chance."""
    if config.stopping == "threshold":
        going = (confidence < 1.0 - config.delta).astype(jnp.float32)[..., None]
    return jax.lax.stop_gradient(soft_stops(going, chance))


def deciding(
    going: Float[Array, "batch rounds agents"], soft: Soft, least: Scalar
) -> Float[Array, "batch rounds agents"]:
    """The chance that an agent's stop decides: the round is reached and the others go on; at least so much."""
    own = jnp.eye(going.shape[-1], dtype=bool)[None, None]
    others = jnp.prod(jnp.where(own, 1.0, going[..., None, :]), axis=-1)
    return jnp.maximum(soft.reached[..., None] * others, least)


def stop_divergence(lead: Float[Array, "*shape"], odds: Float[Array, ""]) -> Float[Array, "*shape"]:
    """Kullback-Leibler divergence of a coin with these log-odds of going on from one with those, up to a constant."""
    going = jax.nn.sigmoid(lead)
    entropy = going * jax.nn.softplus(-lead) + (1.0 - going) * jax.nn.softplus(lead)
    return (1.0 - going) * odds - entropy


def potential_of(config: Config, judged: Judged, progress: Float[Array, ""]) -> Float[Array, "batch rounds"]:
    """What rises with what is known: the probability of the truth at first, confidence in the end."""
    it = settings(config)
    share = it.truth_weight * jnp.maximum(1.0 - 1.5 * progress, 0.0)
    log_truth = jnp.maximum(judged.log_truth, LEAST_LOG)
    truth = (1.0 - it.log_truth_weight) * jnp.exp(judged.log_truth) + it.log_truth_weight * LOG_WEIGHT * log_truth
    return (1.0 - share) * judged.confidence + share * truth


def lowest_potential(config: Config, progress: Float[Array, ""]) -> Float[Array, ""]:
    """What it cannot fall below."""
    it = settings(config)
    return it.truth_weight * jnp.maximum(1.0 - 1.5 * progress, 0.0) * it.log_truth_weight * LOG_WEIGHT * LEAST_LOG


def seen_at_stop(
    problem: Problem, config: Config, inference: InferenceNetwork, episode: Episode, seen: Histories, judged: Judged
) -> Float[Array, "batch rounds"]:
    """The confidence that a threshold looks at: the network's, whoever is paid by exact Bayes."""
    if config.stopping == "threshold" and learns_from_exact(problem, config):
        return judge(problem, inference, seen.team, episode).confidence
    return judged.confidence


def rewards_of(
    config: Config, potential: Float[Array, "batch rounds"], episode: Episode, step_cost: Float[Array, ""]
) -> Float[Array, "batch rounds"]:
    """What going on pays in each round, relative to stopping; nothing can be played in the last."""
    paid = jax.vmap(lambda r, p: episode_rewards(r, p, step_cost, config.delta, shaped=True))(potential, episode.payoff)
    return paid.going_on.at[:, -1].set(0.0)


def exists(rounds: int) -> Float[Array, "1 rounds"]:
    """1 where there is a choice: in the last round there is none."""
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
    """Accuracy and confidence at the stop, τ and the share forced, in the mean over who stops when."""
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
