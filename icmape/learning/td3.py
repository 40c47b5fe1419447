"""TD3 for teams: twin centralized critics on replayed episodes, target networks, delayed stochastic actors.

Actions are sampled from the policy, and episodes continue past every STOP. A critic gives the values of all actions of
an agent, given the actions that the others took. Values and the objective of the actors are therefore exact
expectations over the actions of the agent and over stopping times.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from icmape.learning.algorithms import TD3, Scalar
from icmape.learning.config import Config
from icmape.learning.inference_loss import inference_step, judge_for_reward
from icmape.learning.off_policy import Losses, Step, Turn, learn_replayed, mean_over_updates
from icmape.learning.optimize import Optimizer, descend, follow
from icmape.learning.returns import soft_returns, weighted_mean
from icmape.learning.scores import chosen, joint_scores
from icmape.learning.soft_stops import (
    FIRST_SCORES,
    Weights,
    chance_ends,
    deciding,
    lead_of,
    lowest_potential,
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
from icmape.networks import Actors, Critic, InferenceNetwork, make_inference
from icmape.play.rollout import Episode, Histories, executed, histories
from icmape.problem import Problem

__all__ = ["LOSSES", "init", "learn", "noise"]
LOSSES = ("inference_loss", "critic_loss", "actor_loss", "pooled_confidence", "entropy")


class Learner(NamedTuple):
    """Networks, averages and optimizer states of TD3."""

    actors: Actors
    critics: tuple[Critic, Critic]
    inference: InferenceNetwork
    target_actors: Actors
    target_critics: tuple[Critic, Critic]
    slow_inference: InferenceNetwork  # gives rewards, so that they change slowly
    actor_moments: PyTree
    critic_moments: PyTree
    inference_moments: PyTree


class Batch(NamedTuple):
    """Replayed episodes with the inputs of the losses; leading axes (episodes, rounds)."""

    seen: Histories
    actions: Int[Array, "batch rounds agents"]
    joint: Float[Array, "batch rounds agents actions"]  # the actions as one-hot vectors
    confidence: Float[Array, "batch rounds"]
    gain: Float[Array, "batch rounds agents"]  # return of continuing, relative to stopping, by each agent's critic
    scale: Float[Array, ""]  # standard deviation of gain - values
    valuing: Float[Array, "batch rounds"]  # weight of the value: the probability that the round is reached
    played: Float[Array, "batch rounds"]  # 1 up to the stop
    labels: Labels | None  # of the teacher


def init(problem: Problem, config: Config, optimizer: Optimizer, *, key: Key[Array, ""]) -> Learner:
    """Fresh networks; target networks start as copies."""
    for_actors, for_first, for_second, for_inference = jax.random.split(key, 4)
    net, rounds = config.network, config.max_rounds or problem.horizon
    actors = Actors(
        problem, net.hidden_size, net.encoder, net.stop_bias, net.share_weights, "apart", rounds, key=for_actors
    )
    actors = actors.scaled(FIRST_SCORES)
    critics = (
        Critic(problem, net.hidden_size, net.encoder, problem.actions, key=for_first),
        Critic(problem, net.hidden_size, net.encoder, problem.actions, key=for_second),
    )
    inference = make_inference(problem, net.hidden_size, net.encoder, net.inference, key=for_inference)
    moments = [optimizer.init(part) for part in (actors, critics, inference)]
    return Learner(actors, critics, inference, actors, critics, inference, *moments)


def learn(
    problem: Problem, config: Config, learner: Learner, turn: Turn, *, key: Key[Array, ""]
) -> tuple[Learner, Losses]:
    """The gradient steps of an iteration on replayed episodes: mean losses, and metrics of the fresh episodes."""
    weights, ends = weights_at(problem, config, turn), chance_ends(config, turn)

    def advance(problem: Problem, config: Config, learner: Learner, episode: Episode, step: Step, **_: object) -> tuple:
        return update(problem, config, learner, episode, step, weights, ends)

    metrics = measure_fresh(problem, config, learner, turn)
    learner, losses = learn_replayed(advance, problem, config, learner, turn, key=key)
    losses = mean_over_updates(config, losses, turn, settings(config).policy_delay)
    return learner, metrics | {name: losses[name] for name in ("inference_loss", "critic_loss", "actor_loss")}


def measure_fresh(problem: Problem, config: Config, learner: Learner, turn: Turn) -> Losses:
    """Metrics of the actors, from the episodes that they played in this iteration."""
    drawn = jax.tree.map(lambda x: x[config.greedy_worlds :], turn.fresh)
    seen = jax.vmap(lambda e: histories(problem, e))(drawn)
    log_actions, going = split_choice(joint_scores(config, learner.actors, seen))
    judged = judge_for_reward(problem, config, learner.slow_inference, seen.team, drawn)
    soft = stops_of(config, going, seen_at_stop(problem, config, learner.slow_inference, drawn, seen, judged))
    entropy = jnp.mean(-jnp.sum(jnp.exp(log_actions) * log_actions, axis=-1), axis=-1)
    return measured(problem, config, learner.slow_inference, drawn, seen, judged, soft) | {
        "pooled_confidence": jnp.mean(judged.confidence),
        "entropy": weighted_mean(entropy, jnp.maximum(soft.reached, 1e-6)),
    }


def update(
    problem: Problem,
    config: Config,
    learner: Learner,
    episode: Episode,
    step: Step,
    weights: Weights,
    ends: Float[Array, ""],
) -> tuple[Learner, Losses]:
    """One gradient step of inference and critics on a batch, and of the actors every `policy_delay` steps."""
    td3 = settings(config)
    seen = jax.vmap(lambda e: histories(problem, e))(episode)
    learner, inference_loss = inference_step(problem, config, step.optimizer, learner, seen.team, episode, step.rate)
    batch = prepare(problem, config, learner, episode, seen, step, ends)
    critics, moments, critic_loss = descend(
        step.optimizer,
        lambda critics: critic_loss_of(critics, batch),
        learner.critics,
        learner.critic_moments,
        config.critic_lr * step.rate,
    )
    learner = learner._replace(critics=critics, critic_moments=moments)
    learner, actor_loss = jax.lax.cond(
        step.number % td3.policy_delay == td3.policy_delay - 1,
        lambda learner: _update_actors(config, learner, batch, step, weights, ends),
        lambda learner: (learner, jnp.zeros(())),
        learner,
    )
    return learner, {"inference_loss": inference_loss, "critic_loss": critic_loss, "actor_loss": actor_loss}


def _update_actors(
    config: Config, learner: Learner, batch: Batch, step: Step, weights: Weights, ends: Float[Array, ""]
) -> tuple[Learner, Float[Array, ""]]:
    td3 = settings(config)
    used = learner.critics[:1] if td3.actor_value == "q1" else learner.critics
    worth = values_of(used, batch.seen, batch.joint)
    actors, moments, loss = descend(
        step.optimizer,
        lambda actors: actor_loss_of(config, actors, worth, batch, weights, ends),
        learner.actors,
        learner.actor_moments,
        config.actor_lr * step.rate,
    )
    return learner._replace(
        actors=actors,
        actor_moments=moments,
        target_actors=follow(learner.target_actors, actors, td3.target_update_rate),
        target_critics=follow(learner.target_critics, learner.critics, td3.target_update_rate),
        slow_inference=follow(learner.slow_inference, learner.inference, td3.target_update_rate),
    ), loss


def prepare(
    problem: Problem,
    config: Config,
    learner: Learner,
    episode: Episode,
    seen: Histories,
    step: Step,
    ends: Float[Array, ""],
) -> Batch:
    """λ-returns along the replayed episodes, bootstrapped with the policy of the target actors."""
    judged = judge_for_reward(problem, config, learner.slow_inference, seen.team, episode)
    potential = potential_of(config, judged, step.progress)
    rewards = rewards_of(config, potential, episode, step.step_cost)
    actions = executed(problem, episode.actions.astype(jnp.int32))
    joint = jax.nn.one_hot(actions, problem.actions)
    log_actions, going = split_choice(joint_scores(config, learner.target_actors, seen))
    confidence = seen_at_stop(problem, config, learner.slow_inference, episode, seen, judged)
    soft = stops_of(config, going, confidence, ends)
    worth = values_of(learner.target_critics, seen, joint)
    values = expected(log_actions, worth)
    if config.reward == "confidence":
        values = within_reach(values, potential, lowest_potential(config, step.progress), step.step_cost)
    played = rounds_played(episode)
    gain = returns_of(rewards, values, soft.together, played, settings(config).gae_lambda)
    weight = jnp.maximum(soft.reached, settings(config).min_round_weight) * played
    scale = jnp.sqrt(weighted_mean(jnp.mean((gain - values) ** 2, axis=-1), weight)) + 1e-6
    labels = teacher_labels(problem, config, step.teacher, episode, seen, step.progress)
    return jax.lax.stop_gradient(Batch(seen, actions, joint, confidence, gain, scale, weight, played, labels))


def rounds_played(episode: Episode) -> Float[Array, "batch rounds"]:
    """1 in rounds before the stop, which is the last round in sampled episodes."""
    rounds = jnp.arange(episode.actions.shape[1])[None]
    return (rounds < episode.stop[:, None]).astype(jnp.float32)


def returns_of(
    rewards: Float[Array, "batch rounds"],
    values: Float[Array, "batch rounds agents"],
    together: Float[Array, "batch rounds"],
    played: Float[Array, "batch rounds"],
    trace: Scalar,
) -> Float[Array, "batch rounds agents"]:
    """The returns of each agent; after the stop of a greedy episode they are replaced by the values."""
    unknown = (1.0 - played).at[:, -1].set(0.0)
    before = jnp.concatenate([jnp.zeros_like(unknown[:, :1]), unknown[:, :-1]], axis=1)

    def of_agent(values: Float[Array, "batch rounds"]) -> Float[Array, "batch rounds"]:
        return soft_returns(jnp.where(unknown > 0, values, rewards), values, together * (1.0 - before), trace)

    return jax.vmap(of_agent, in_axes=-1, out_axes=-1)(values)


def values_of(
    critics: tuple[Critic, ...], seen: Histories, joint: Float[Array, "batch rounds agents actions"]
) -> Float[Array, "batch rounds agents actions"]:
    """Values of all actions of each agent given the actions of the others: the minimum over these critics."""
    values = [jax.vmap(jax.vmap(c.values))(jax.vmap(c.summaries)(seen.team), joint) for c in critics]
    return jnp.min(jnp.stack(values), axis=0)


def expected(
    log_actions: Float[Array, "batch rounds agents actions"], worth: Float[Array, "batch rounds agents actions"]
) -> Float[Array, "batch rounds agents"]:
    """The expected value of continuing for each agent, over its own actions."""
    return jnp.sum(jnp.exp(log_actions) * worth, axis=-1)


def within_reach(
    values: Float[Array, "batch rounds agents"],
    potential: Float[Array, "batch rounds"],
    lowest: Float[Array, ""],
    step_cost: Float[Array, ""],
) -> Float[Array, "batch rounds agents"]:
    """Clip values to the range that any policy can reach.

    A potential r gains at most 1-r, and loses at most r minus its lower bound and the cost of all remaining rounds.
    """
    left = jnp.arange(values.shape[1] - 1, -1, -1)[None, :, None].astype(jnp.float32)
    now = potential[..., None]
    return jnp.clip(values, lowest - now - step_cost * left, 1.0 - now)


def critic_loss_of(critics: tuple[Critic, Critic], batch: Batch) -> Float[Array, ""]:
    """Squared error of both critics at the actions taken."""

    def error(critic: Critic) -> Float[Array, "batch rounds"]:
        values = chosen(values_of((critic,), batch.seen, batch.joint), batch.actions)
        return jnp.mean((values - batch.gain) ** 2, axis=-1)

    return weighted_mean(error(critics[0]) + error(critics[1]), batch.valuing)


def actor_loss_of(
    config: Config,
    actors: Actors,
    worth: Float[Array, "batch rounds agents actions"],
    batch: Batch,
    weights: Weights,
    ends: Float[Array, ""],
) -> Float[Array, ""]:
    """Minus the expected value of actions with an entropy bonus, and of continuing, weighted by `deciding`."""
    td3, worth = settings(config), worth / batch.scale
    scores = joint_scores(config, actors, batch.seen)
    log_actions, going = split_choice(scores)
    soft = stops_of(config, going, batch.confidence, ends)
    acting = jnp.maximum(soft.played, td3.min_round_weight) * batch.played
    entropy = -jnp.sum(jnp.exp(log_actions) * log_actions, axis=-1)
    objective = jnp.mean(expected(log_actions, worth) + weights.entropy * entropy, axis=-1)
    loss = -weighted_mean(objective, acting)
    decisive = deciding(jax.lax.stop_gradient(going), soft, td3.min_stop_prob) * batch.played[..., None]
    if config.stopping == "learned":
        gain = jax.lax.stop_gradient(expected(log_actions, worth))
        stop = going * gain - weights.temperature * stop_divergence(lead_of(scores), weights.odds)
        loss -= jnp.sum(decisive * stop) / (jnp.sum(acting) * going.shape[-1])
    return with_teacher(loss, scores, batch.labels, decisive > 0)


def settings(config: Config) -> TD3:
    """The settings of this algorithm."""
    assert isinstance(config.algorithm, TD3)  # this module is selected by their type
    return config.algorithm
