"""PPO for teams: decentralized stochastic actors and a centralized value.

Actors, value and inference network learn from the episodes of the current iteration. Episodes continue past every STOP
to the last round, so that the value after a stop is observed; returns are expectations over stopping times
(`returns.soft_returns`).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from icmape.learning.algorithms import PPO
from icmape.learning.config import Config
from icmape.learning.inference_loss import Judged, inference_step, judge_for_reward
from icmape.learning.off_policy import Losses, Turn
from icmape.learning.optimize import Optimizer, adam, descend, follow, progress_at, step_size
from icmape.learning.returns import Soft, soft_returns, weighted_mean
from icmape.learning.scores import chosen, joint_scores
from icmape.learning.soft_stops import (
    FIRST_SCORES,
    Weights,
    chance_ends,
    deciding,
    exists,
    lead_of,
    measured,
    noise,
    potential_of,
    rewards_of,
    seen_at_stop,
    split_choice,
    stop_divergence,
    stops_of,
    weights_at,
)
from icmape.learning.teacher import Labels, teacher_labels, with_teacher
from icmape.networks import Actors, InferenceNetwork, TeamValue, make_inference
from icmape.play.devices import share
from icmape.play.rollout import Episode, Histories, executed, histories
from icmape.problem import Problem

__all__ = ["LOSSES", "init", "learn", "noise"]
LOSSES = ("inference_loss", "critic_loss", "actor_loss", "pooled_confidence", "entropy")
INFERENCE_POLYAK = 0.2  # Polyak rate per iteration of the inference network that gives rewards


class Learner(NamedTuple):
    """Networks, averages and optimizer states of PPO."""

    actors: Actors
    value: TeamValue
    inference: InferenceNetwork
    target_actors: Actors
    slow_inference: InferenceNetwork
    actor_moments: PyTree
    value_moments: PyTree
    inference_moments: PyTree


class Fresh(NamedTuple):
    """Episodes of this iteration with the inputs of the losses; leading axes (episodes, rounds)."""

    actions: Int[Array, "batch rounds agents"]
    seen: Histories
    gain: Float[Array, "batch rounds"]  # normalized return of continuing, relative to stopping
    advantage: Float[Array, "batch rounds"]  # normalized, relative to the value
    returns: Float[Array, "batch rounds"]  # targets of the value
    acting: Float[Array, "batch rounds"]  # weight of the actions: the probability that the round is played
    valuing: Float[Array, "batch rounds"]  # weight of the value: the probability that the round is reached
    deciding: Float[Array, "batch rounds agents"]  # weight of each agent's stop: the probability that it is decisive
    log_actions: Float[Array, "batch rounds agents"]  # log-probability of each action, given that the agent continues
    going: Float[Array, "batch rounds agents"]  # probability of continuing, by the actors that played
    labels: Labels | None  # of the teacher


def init(problem: Problem, config: Config, optimizer: Optimizer, *, key: Key[Array, ""]) -> Learner:
    """Fresh networks; Polyak averages start as copies."""
    for_actors, for_value, for_inference = jax.random.split(key, 3)
    net, rounds = config.network, config.max_rounds or problem.horizon
    actors = Actors(
        problem, net.hidden_size, net.encoder, net.stop_bias, net.share_weights, "apart", rounds, key=for_actors
    )
    actors = actors.scaled(FIRST_SCORES)
    value = TeamValue(problem, net.hidden_size, net.encoder, key=for_value)
    inference = make_inference(problem, net.hidden_size, net.encoder, net.inference, key=for_inference)
    moments = [optimizer.init(part) for part in (actors, value, inference)]
    return Learner(actors, value, inference, actors, inference, *moments)


def learn(
    problem: Problem, config: Config, learner: Learner, turn: Turn, *, key: Key[Array, ""]
) -> tuple[Learner, Losses]:
    """The gradient steps of an iteration; their mean losses, and metrics of the episodes."""
    ppo, optimizer = settings(config), adam(config.max_grad_norm)
    for_inference, for_order = jax.random.split(key)
    drawn = jax.tree.map(lambda x: x[config.greedy_worlds :], turn.fresh)  # without greedy episodes
    seen = jax.vmap(lambda e: histories(problem, e))(drawn)
    log_actions, going = split_choice(joint_scores(config, learner.actors, seen))
    judged = judge_for_reward(problem, config, learner.slow_inference, seen.team, drawn)
    confidence = seen_at_stop(problem, config, learner.slow_inference, drawn, seen, judged)
    soft = stops_of(config, going, confidence, chance_ends(config, turn))
    learner, inference_loss = learn_inference(problem, config, learner, drawn, seen, soft, turn, key=for_inference)
    data = prepare(problem, config, learner, drawn, seen, judged, (log_actions, going, soft), turn)
    weights, rate = weights_at(problem, config, turn), step_size(config, turn.iteration)

    def step(learner: Learner, rows: Int[Array, "rows"]) -> tuple[Learner, tuple]:
        batch = share(jax.tree.map(lambda x: x[rows], data))
        actors, actor_moments, actor_loss = descend(
            optimizer,
            lambda actors: actor_loss_of(config, actors, batch, weights),
            learner.actors,
            learner.actor_moments,
            config.actor_lr * rate,
        )
        value, moments, value_loss = descend(
            optimizer,
            lambda value: value_loss_of(value, batch),
            learner.value,
            learner.value_moments,
            config.critic_lr * rate,
        )
        learner = learner._replace(actors=actors, actor_moments=actor_moments, value=value, value_moments=moments)
        return learner, (value_loss, actor_loss)

    orders = jax.vmap(lambda k: jax.random.permutation(k, drawn.stop.shape[0]))(
        jax.random.split(for_order, ppo.update_epochs)
    )
    learner, (value_loss, actor_loss) = jax.lax.scan(
        step, learner, orders.reshape(ppo.update_epochs * ppo.num_minibatches, -1)
    )
    learner = learner._replace(target_actors=follow(learner.target_actors, learner.actors, ppo.target_update_rate))
    soft = stops_of(config, going, confidence)
    metrics = measured(problem, config, learner.slow_inference, drawn, seen, judged, soft)
    entropy = -jnp.sum(jnp.exp(log_actions) * log_actions, axis=-1)
    metrics |= {
        "inference_loss": inference_loss,
        "critic_loss": jnp.mean(value_loss),
        "actor_loss": jnp.mean(actor_loss),
        "pooled_confidence": jnp.mean(judged.confidence),
        "entropy": weighted_mean(jnp.mean(entropy, axis=-1), jnp.maximum(soft.reached, 1e-6)),
    }
    return learner, metrics


def learn_inference(
    problem: Problem,
    config: Config,
    learner: Learner,
    episode: Episode,
    seen: Histories,
    soft: Soft,
    turn: Turn,
    *,
    key: Key[Array, ""],
) -> tuple[Learner, Float[Array, ""]]:
    """Gradient steps of the inference network on each episode once; prefixes that are reached have more weight."""
    weight = (0.5 + 0.5 * soft.reached) / soft.reached.shape[1]
    optimizer, rate = adam(config.max_grad_norm), step_size(config, turn.iteration)

    def step(learner: Learner, rows: Int[Array, "rows"]) -> tuple[Learner, Float[Array, ""]]:
        team, batch, weights = share(jax.tree.map(lambda x: x[rows], (seen.team, episode, weight)))
        return inference_step(problem, config, optimizer, learner, team, batch, rate, weights)

    orders = jax.random.permutation(key, episode.stop.shape[0]).reshape(config.gradient_steps, -1)
    learner, losses = jax.lax.scan(step, learner, orders)
    slow = follow(learner.slow_inference, learner.inference, INFERENCE_POLYAK)
    return learner._replace(slow_inference=slow), jnp.mean(losses)


def prepare(
    problem: Problem,
    config: Config,
    learner: Learner,
    episode: Episode,
    seen: Histories,
    judged: Judged,
    probabilities: tuple[Float[Array, "batch rounds agents actions"], Float[Array, "batch rounds agents"], Soft],
    turn: Turn,
) -> Fresh:
    """Advantages, returns and weights, computed with the networks that played."""
    ppo, progress = settings(config), progress_at(config, turn.iteration)
    log_actions, going, soft = probabilities
    rewards = rewards_of(config, potential_of(config, judged, progress), episode, turn.step_cost)
    values = jax.vmap(learner.value.unroll)(seen.team)
    gain = soft_returns(rewards, values, soft.together, ppo.gae_lambda)
    choice = exists(rewards.shape[1])
    scale = jnp.sqrt(weighted_mean((gain - values) ** 2, soft.played)) + 1e-6
    actions = executed(problem, episode.actions.astype(jnp.int32))
    data = Fresh(
        actions,
        seen,
        gain / scale,
        (gain - values) / scale,
        gain,
        jnp.maximum(soft.played, ppo.min_round_weight) * choice,
        jnp.maximum(soft.reached, ppo.min_round_weight) * choice,
        deciding(going, soft, ppo.min_stop_prob) * choice[..., None],
        chosen(log_actions, actions),
        going,
        teacher_labels(problem, config, turn.teacher, episode, seen, progress),
    )
    return jax.lax.stop_gradient(data)


def actor_loss_of(config: Config, actors: Actors, batch: Fresh, weights: Weights) -> Float[Array, ""]:
    """The losses of actions and stops, with their regularization, and the imitation of the teacher."""
    scores = joint_scores(config, actors, batch.seen)
    loss = action_loss_of(config, scores, batch, weights)
    if config.stopping == "learned":
        loss += stop_loss_of(config, scores, batch, weights)
    return with_teacher(loss, scores, batch.labels, batch.deciding > 0)


def action_loss_of(
    config: Config, scores: Float[Array, "batch rounds agents choices"], batch: Fresh, weights: Weights
) -> Float[Array, ""]:
    """The clipped surrogate of PPO for the action of each agent, with the team's advantage, and an entropy bonus."""
    limit, log_actions = settings(config).clip_eps, split_choice(scores)[0]
    ratio = jnp.exp(chosen(log_actions, batch.actions) - batch.log_actions)
    advantage = batch.advantage[..., None]
    surrogate = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1.0 - limit, 1.0 + limit) * advantage)
    entropy = -jnp.sum(jnp.exp(log_actions) * log_actions, axis=-1)
    return -weighted_mean(jnp.mean(surrogate + weights.entropy * entropy, axis=-1), batch.acting)


def stop_loss_of(
    config: Config, scores: Float[Array, "batch rounds agents choices"], batch: Fresh, weights: Weights
) -> Float[Array, ""]:
    """The probability of continuing times its value, for each agent given the choices of the others.

    Stopping has value 0, so the values of both choices are known in every round. A KL term penalizes the divergence
    from a constant stopping rate: at the optimum the log-odds of continuing are the prior ones plus value/temperature.
    """
    limit, lead = settings(config).clip_eps, lead_of(scores)
    going = jax.nn.sigmoid(lead)
    worth = batch.gain[..., None]
    near = jnp.clip(going, batch.going - limit, batch.going + limit)
    objective = jnp.minimum(going * worth, near * worth) - weights.temperature * stop_divergence(lead, weights.odds)
    scale = jnp.sum(batch.acting) * going.shape[-1]
    return -jnp.sum(batch.deciding * objective) / scale


def value_loss_of(value: TeamValue, batch: Fresh) -> Float[Array, ""]:
    """Squared error of the value of continuing, over rounds with a choice."""
    return weighted_mean((jax.vmap(value.unroll)(batch.seen.team) - batch.returns) ** 2, batch.valuing)


def settings(config: Config) -> PPO:
    """The settings of this algorithm."""
    assert isinstance(config.algorithm, PPO)  # this module is selected by their type
    return config.algorithm
