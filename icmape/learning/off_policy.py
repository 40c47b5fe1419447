"""Shared parts of algorithms with replay: batches, targets, and the loop of gradient steps."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from icmape.learning import replay
from icmape.learning.algorithms import OffPolicy
from icmape.learning.config import Config
from icmape.learning.inference_loss import inference_step, judge_for_reward
from icmape.learning.optimize import Optimizer, adam, follow, progress_at, step_size
from icmape.learning.replay import Replay
from icmape.learning.returns import Rewards, episode_rewards, lambda_returns, masked_mean
from icmape.play.policy import Policy
from icmape.play.rollout import Episode, Histories, histories
from icmape.problem import Problem

Losses = dict[str, Float[Array, ""]]
Update = Callable[..., tuple[Any, Losses]]


class Turn(NamedTuple):
    """The inputs of one iteration of learning."""

    fresh: Episode  # of this iteration; also in the replay
    memory: Replay
    step_cost: Float[Array, ""]
    iteration: Int[Array, ""]
    length: Float[Array, ""]  # rounds that a good schedule needs
    teacher: Policy | None = None


class Step(NamedTuple):
    """The inputs of a gradient step besides its episodes."""

    optimizer: Optimizer
    step_cost: Float[Array, ""]
    number: Int[Array, ""]  # counted over the whole run
    rate: Float[Array, ""]  # factor of the learning rates
    progress: Float[Array, ""]  # of training, from 0 to 1
    teacher: Policy | None


class Replayed(NamedTuple):
    """A batch of episodes with the inputs of its losses; leading axes (episodes, rounds)."""

    episode: Episode
    seen: Histories
    rewards: Rewards
    confidence: Float[Array, "batch rounds"]

    @property
    def rounds(self) -> Int[Array, "batch rounds"]:
        """The number of every round."""
        episodes, rounds = self.confidence.shape
        return jnp.broadcast_to(jnp.arange(rounds), (episodes, rounds))

    def until(self, offset: int) -> Bool[Array, "batch rounds"]:
        """Rounds up to the stop plus `offset`."""
        stop: Int[Array, batch] = self.episode.stop
        return self.rounds <= stop[:, None] + offset


def learn_replayed(
    update: Update,
    problem: Problem,
    config: Config,
    learner: Any,
    turn: Turn,
    *,
    key: Key[Array, ""],
) -> tuple[Any, Losses]:
    """The gradient steps of an iteration on replayed episodes, and their mean losses."""

    def gradient_step(learner: Any, index: Int[Array, ""]) -> tuple[Any, Losses]:
        for_batch, for_update = jax.random.split(jax.random.fold_in(key, index))
        batch = replay.draw(turn.memory, config.batch_size, key=for_batch)
        number, rate = turn.iteration * config.gradient_steps + index, step_size(config, turn.iteration)
        progress = progress_at(config, turn.iteration)
        step = Step(adam(config.max_grad_norm), turn.step_cost, number, rate, progress, turn.teacher)
        return update(problem, config, learner, batch, step, key=for_update)

    learner, losses = jax.lax.scan(gradient_step, learner, jnp.arange(config.gradient_steps))
    explored = masked_mean(turn.fresh.stop.astype(jnp.float32) + 1.0, ~turn.fresh.greedy)
    return learner, {**jax.tree.map(jnp.mean, losses), "explored_tau": explored}


def mean_over_updates(config: Config, losses: Losses, turn: Turn, delay: int) -> Losses:
    """The actor loss as a mean over the updates of the actors; it is 0 in the other gradient steps."""
    numbers = turn.iteration * config.gradient_steps + jnp.arange(config.gradient_steps)
    updates = jnp.sum((numbers % delay == delay - 1).astype(jnp.float32))
    return losses | {"actor_loss": losses["actor_loss"] * config.gradient_steps / jnp.maximum(updates, 1.0)}


def read_batch(
    problem: Problem, config: Config, learner: Any, episode: Episode, step: Step, *, shaped: bool = True
) -> tuple[Any, Replayed, Losses]:
    """A gradient step of the inference network, and the batch with rewards from its slow copy."""
    seen = jax.vmap(lambda e: histories(problem, e))(episode)
    learner, loss = inference_step(problem, config, step.optimizer, learner, seen.team, episode, step.rate)
    confidence = judge_for_reward(problem, config, learner.slow_inference, seen.team, episode).confidence
    rewards = jax.vmap(lambda r, p: episode_rewards(r, p, step.step_cost, config.delta, shaped=shaped))(
        confidence, episode.payoff
    )
    batch = Replayed(episode, seen, rewards, confidence)
    return learner, batch, {"inference_loss": loss, "pooled_confidence": masked_mean(confidence, batch.until(0))}


def update_inference(
    problem: Problem, config: Config, learner: Any, episode: Episode, step: Step, *, key: Key[Array, ""]
) -> tuple[Any, Losses]:
    """One gradient step of the inference network alone."""
    learner, _, losses = read_batch(problem, config, learner, episode, step)
    slow = follow(learner.slow_inference, learner.inference, config.algorithm.target_update_rate)
    return learner._replace(slow_inference=slow), losses


def ends(
    problem: Problem, config: Config, batch: Replayed, actions: Int[Array, "batch rounds agents"]
) -> Bool[Array, "batch rounds"]:
    """Whether the team would end the episode in each round: by the STOP of any agent, or by the threshold."""
    if config.stopping == "threshold":
        return batch.confidence >= 1.0 - config.delta
    return jnp.any(actions == problem.actions, axis=-1)


def returns(
    config: Config,
    batch: Replayed,
    values: Float[Array, "batch rounds agents"],
    step_cost: Float[Array, ""],
) -> Float[Array, "batch rounds agents"]:
    """λ-returns along the stored episodes, bootstrapped with the values of the target policy."""
    algorithm = config.algorithm
    assert isinstance(algorithm, OffPolicy)
    stopping = batch.rewards.stopping[..., None]
    left = jnp.arange(values.shape[1] - 1, -1, -1)[None, :, None]
    if algorithm.clip_targets and config.reward == "confidence":
        confidence = batch.confidence[..., None]
        lowest = stopping - confidence - step_cost * left.astype(jnp.float32)
        values = jnp.clip(values, lowest, stopping + 1.0 - confidence)
    values = jnp.where(left == 0, stopping, values)
    along = jax.vmap(partial(lambda_returns, trace=algorithm.gae_lambda))
    returned = along(batch.rewards, values, ~batch.until(-1), batch.episode.explored)
    at_stop = (batch.rounds == batch.episode.stop[:, None])[..., None]
    return jax.lax.stop_gradient(jnp.where(at_stop, stopping, returned))
