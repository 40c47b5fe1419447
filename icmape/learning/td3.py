"""TD3 for teams: twin centralized critics, target networks, delayed actors, Gumbel-Softmax.

One implementation; the paper's literal recipe and ours differ in settings (`config.TD3`). Every round of every replayed
episode is trained on, from one pass of each encoder.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.learning.config import TD3, Config
from icmape.learning.inference import inference_step, posterior_confidence
from icmape.learning.optimize import Optimizer, descend, follow
from icmape.learning.returns import Rewards, confidence_rewards, lambda_returns, masked_mean
from icmape.learning.rollout import Episode, Histories, Noise, histories
from icmape.networks import Actors, Critic, Inference
from icmape.problems import Problem

LOSSES = ("inference_loss", "critic_loss", "actor_loss", "pooled_confidence")


class Learner(NamedTuple):
    """Everything that TD3 learns or averages."""

    actors: Actors
    critics: tuple[Critic, Critic]
    inference: Inference
    target_actors: Actors
    target_critics: tuple[Critic, Critic]
    slow_inference: Inference  # rewards come from it, so that they move slowly
    actor_moments: PyTree
    critic_moments: PyTree
    inference_moments: PyTree


class Replayed(NamedTuple):
    """A batch with all that its losses share; leading axes (episodes, rounds)."""

    episode: Episode
    seen: Histories
    rewards: Rewards
    confidence: Float[Array, "batch rounds"]


def init(problem: Problem, config: Config, optimizer: Optimizer, *, key: Key[Array, ""]) -> Learner:
    """Fresh networks; targets start as copies."""
    for_actors, for_first, for_second, for_inference = jax.random.split(key, 4)
    net, choices = config.network, problem.actions + (config.algorithm.stop_value == "learned")
    actors = Actors(problem, net.width, net.encoder, net.stop_bias, net.shared, key=for_actors)
    critics = (
        Critic(problem, net.width, net.encoder, choices, key=for_first),
        Critic(problem, net.width, net.encoder, choices, key=for_second),
    )
    inference = Inference(problem, net.width, net.encoder, key=for_inference)
    moments = [optimizer.init(part) for part in (actors, critics, inference)]
    return Learner(actors, critics, inference, actors, critics, inference, *moments)


def noise(config: Config, progress: Float[Array, ""], greedy: Bool[Array, "worlds"]) -> Noise:
    """The exploration of each world at this point of training (progress from 0 to 1)."""
    td3 = config.algorithm
    rate = td3.noise + (td3.noise_end - td3.noise) * progress
    return Noise(jnp.where(greedy, 0.0, rate), jnp.where(greedy, 1.0, td3.keep_stop), td3.noise_on_stop)


def update(
    problem: Problem,
    config: Config,
    optimizer: Optimizer,
    learner: Learner,
    episode: Episode,
    step_cost: Float[Array, ""],
    with_actors: Bool[Array, ""],
    rate: Float[Array, ""],
    *,
    key: Key[Array, ""],
) -> tuple[Learner, dict[str, Float[Array, ""]]]:
    """One gradient step of inference and critics on a batch of episodes, and of the actors where it is their turn."""
    seen = jax.vmap(lambda e: histories(problem, e))(episode)
    learner, inference_loss = inference_step(problem, config, optimizer, learner, seen.team, episode, rate)
    confidence = posterior_confidence(problem, learner.slow_inference, seen.team)
    rewards = jax.vmap(
        lambda r: confidence_rewards(r, step_cost, config.delta, shaped=config.algorithm.shaping == "potential")
    )(confidence)
    batch = Replayed(episode, seen, rewards, confidence)
    targets = critic_targets(config.algorithm, problem, learner, batch, step_cost)
    critics, moments, critic_loss = descend(
        optimizer,
        lambda critics: critic_loss_of(config.algorithm, problem, critics, batch, targets),
        learner.critics,
        learner.critic_moments,
        config.critic_rate * rate,
    )
    learner = learner._replace(critics=critics, critic_moments=moments)
    learner, actor_loss = jax.lax.cond(
        with_actors,
        lambda it: _update_actors(problem, config, optimizer, it, batch, rate, key),
        lambda it: (it, jnp.zeros(())),
        learner,
    )
    losses = (inference_loss, critic_loss, actor_loss, masked_mean(confidence, _until(batch, 0)))
    return learner, dict(zip(LOSSES, losses, strict=True))


def _update_actors(
    problem: Problem,
    config: Config,
    optimizer: Optimizer,
    learner: Learner,
    batch: Replayed,
    rate: Float[Array, ""],
    key: Key[Array, ""],
) -> tuple[Learner, Float[Array, ""]]:
    td3 = config.algorithm
    summaries = [jax.vmap(critic.summaries)(batch.seen.team) for critic in learner.critics]
    actors, moments, loss = descend(
        optimizer,
        lambda actors: actor_loss_of(td3, actors, learner.critics, summaries, batch, key=key),
        learner.actors,
        learner.actor_moments,
        config.actor_rate * rate,
    )
    return learner._replace(
        actors=actors,
        actor_moments=moments,
        target_actors=follow(learner.target_actors, actors, td3.polyak),
        target_critics=follow(learner.target_critics, learner.critics, td3.polyak),
        slow_inference=follow(learner.slow_inference, learner.inference, td3.polyak),
    ), loss


def critic_targets(
    td3: TD3, problem: Problem, learner: Learner, batch: Replayed, step_cost: Float[Array, ""]
) -> Float[Array, "batch rounds agents"]:
    """λ-returns along the stored episodes, bootstrapped with what the target actors would do."""
    scores = _scores(learner.target_actors, batch.seen)
    actions = jnp.argmax(scores, axis=-1)  # batch rounds agents
    value = _smaller_value(learner.target_critics, batch.seen, actions)
    stopping = batch.rewards.stopping[..., None]
    if td3.stop_value == "known":
        stops = jnp.any(actions == problem.actions, axis=-1, keepdims=True)
        value = jnp.where(stops, stopping, value)
    left = jnp.arange(problem.horizon - 1, -1, -1)[None, :, None]
    if td3.bounded:
        confidence = batch.confidence[..., None]
        lowest = stopping - confidence - step_cost * left.astype(jnp.float32)
        value = jnp.clip(value, lowest, stopping + 1.0 - confidence)
    value = jnp.where(left == 0, stopping, value)
    returns = jax.vmap(partial(lambda_returns, trace=td3.trace))(
        batch.rewards, value, batch.episode.stop, batch.episode.explored
    )
    at_stop = _rounds(batch)[..., None] == batch.episode.stop[:, None, None]
    return jax.lax.stop_gradient(jnp.where(at_stop, stopping, returns))


def critic_loss_of(
    td3: TD3,
    problem: Problem,
    critics: tuple[Critic, Critic],
    batch: Replayed,
    targets: Float[Array, "batch rounds agents"],
) -> Float[Array, ""]:
    """Squared error of both critics at the actions taken, over rounds that went on (and the stop, if it is learned)."""
    rounds = _until(batch, 0 if td3.stop_value == "learned" else -1)
    counted = jnp.broadcast_to(rounds[..., None], targets.shape)
    actions = batch.episode.actions.astype(jnp.int32)
    errors = [(_value_of(critic, batch.seen, actions) - targets) ** 2 for critic in critics]
    return masked_mean(errors[0] + errors[1], counted)


def actor_loss_of(
    td3: TD3,
    actors: Actors,
    critics: tuple[Critic, Critic],
    summaries: list[Float[Array, "batch rounds summary"]],
    batch: Replayed,
    *,
    key: Key[Array, ""],
) -> Float[Array, ""]:
    """Minus the value of the relaxed joint action, over all rounds in which there was a choice."""
    scores = _scores(actors, batch.seen)
    objective = _known_stop_objective if td3.stop_value == "known" else _learned_stop_objective
    value = objective(td3, scores, critics, summaries, batch, key)
    last = _rounds(batch) == batch.confidence.shape[1] - 1
    counted = jnp.broadcast_to((_until(batch, 0) & ~last)[..., None], value.shape)
    legal = jnp.concatenate([batch.seen.allowed, jnp.ones_like(batch.seen.allowed[..., :1])], axis=-1)
    size = jnp.sum(jnp.where(legal, scores, 0.0) ** 2, axis=-1)
    loss = td3.logit_penalty * size - value
    if td3.stop_consistency > 0:
        stopped = batch.episode.greedy[:, None] & (_rounds(batch) == batch.episode.stop[:, None])
        reluctance = -jax.nn.log_softmax(scores)[..., -1]
        loss += jnp.where(stopped[..., None], td3.stop_consistency * reluctance, 0.0)
    return masked_mean(loss, counted)


def _known_stop_objective(
    td3: TD3,
    scores: Float[Array, "batch rounds agents choices"],
    critics: tuple[Critic, Critic],
    summaries: list[Float[Array, "batch rounds summary"]],
    batch: Replayed,
    key: Key[Array, ""],
) -> Float[Array, "batch rounds agents"]:
    """Π(1 - ã_j[STOP]) · Σ ã_i[a] q_i(D, a, ã_-i), and what stopping pays for the rest."""
    noisy = (scores + jax.random.gumbel(key, scores.shape)) / td3.temperature
    arms = jax.nn.softmax(noisy[..., :-1])  # given that the agent goes on
    goes_on = jax.nn.sigmoid(jax.nn.logsumexp(noisy[..., :-1], axis=-1) - noisy[..., -1])
    if td3.joint_gradient:
        joint, others_go = arms, goes_on
    else:
        joint = jax.nn.one_hot(jnp.argmax(scores[..., :-1], axis=-1), scores.shape[-1] - 1)
        others_go = jax.lax.stop_gradient(1.0 - jax.nn.softmax(scores)[..., -1])
    everyone = others_go[..., None, :]
    without_me = jnp.where(jnp.eye(scores.shape[2], dtype=bool)[None, None], 1.0, everyone)
    going = goes_on * jnp.prod(without_me, axis=-1)
    value = jnp.sum(arms * _values(td3, critics, summaries, joint), axis=-1)
    return going * value + (1.0 - going) * batch.rewards.stopping[..., None]


def _learned_stop_objective(
    td3: TD3,
    scores: Float[Array, "batch rounds agents choices"],
    critics: tuple[Critic, Critic],
    summaries: list[Float[Array, "batch rounds summary"]],
    batch: Replayed,
    key: Key[Array, ""],
) -> Float[Array, "batch rounds agents"]:
    """Σ ã_i[a] Q_i(D, a, ã_-i) with STOP among the actions."""
    soft = jax.nn.softmax((scores + jax.random.gumbel(key, scores.shape)) / td3.temperature)
    joint = soft if td3.joint_gradient else jax.nn.one_hot(jnp.argmax(scores, axis=-1), scores.shape[-1])
    return jnp.sum(soft * _values(td3, critics, summaries, joint), axis=-1)


def _values(
    td3: TD3,
    critics: tuple[Critic, Critic],
    summaries: list[Float[Array, "batch rounds summary"]],
    joint: Float[Array, "batch rounds agents choices"],
) -> Float[Array, "batch rounds agents choices"]:
    """The critic that actors climb, at every choice of each agent given the others'."""
    used = 1 if td3.actor_value == "q1" else 2
    found = [jax.vmap(jax.vmap(c.values))(s, joint) for c, s in zip(critics[:used], summaries[:used], strict=True)]
    return found[0] if used == 1 else jnp.minimum(*found)


def _value_of(
    critic: Critic, seen: Histories, actions: Int[Array, "batch rounds agents"]
) -> Float[Array, "batch rounds agents"]:
    """Value of a joint action by each agent's critic."""
    choices = critic.choices
    joint = jax.nn.one_hot(actions, choices)
    values = jax.vmap(jax.vmap(critic.values))(jax.vmap(critic.summaries)(seen.team), joint)
    own = jnp.minimum(actions, choices - 1)[..., None]
    return jnp.take_along_axis(values, own, axis=-1)[..., 0]


def _smaller_value(
    critics: tuple[Critic, Critic], seen: Histories, actions: Int[Array, "batch rounds agents"]
) -> Float[Array, "batch rounds agents"]:
    return jnp.minimum(*(_value_of(critic, seen, actions) for critic in critics))


def _scores(actors: Actors, seen: Histories) -> Float[Array, "batch rounds agents choices"]:
    """Actor scores at every round, out of reach where an action is not allowed."""
    scores = jnp.swapaxes(jax.vmap(actors.unroll)(seen.local), 1, 2)
    legal = jnp.concatenate([seen.allowed, jnp.ones_like(seen.allowed[..., :1])], axis=-1)
    return jnp.where(legal, scores, -1e9)


def _rounds(batch: Replayed) -> Int[Array, "batch rounds"]:
    episodes, rounds = batch.confidence.shape
    return jnp.broadcast_to(jnp.arange(rounds), (episodes, rounds))


def _until(batch: Replayed, offset: int) -> Bool[Array, "batch rounds"]:
    """Rounds up to the stop plus `offset`."""
    stop: Integer[Array, batch] = batch.episode.stop
    return _rounds(batch) <= stop[:, None] + offset
