"""Q-learning on local histories: value decomposition (VDN, QMIX), independent learners and (for one agent) Double DQN.

Values are relative to stopping, so that STOP has value 0 and only rounds before the stop are learned from. The reward
of stopping is the confidence of the team, which an agent cannot predict from its own history.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from icmape.learning import off_policy
from icmape.learning.algorithms import Value
from icmape.learning.config import Config
from icmape.learning.mixing import MIXINGS, Mixing
from icmape.learning.off_policy import Losses, Replayed, Step, ends, read_batch, returns
from icmape.learning.optimize import Optimizer, descend, follow
from icmape.learning.returns import masked_mean
from icmape.learning.scores import chosen, joint_scores
from icmape.networks import Actors, InferenceNetwork, make_inference
from icmape.play.rollout import Episode, Noise
from icmape.problem import Problem

LOSSES = ("explored_tau", "inference_loss", "critic_loss", "pooled_confidence")


class Learner(NamedTuple):
    """Networks, averages and optimizer states. The scores of an agent are its values."""

    actors: Actors
    mixing: Mixing
    inference: InferenceNetwork
    target_actors: Actors
    target_mixing: Mixing
    slow_inference: InferenceNetwork  # gives rewards, so that they change slowly
    actor_moments: PyTree  # of actors and mixing
    inference_moments: PyTree


def init(problem: Problem, config: Config, optimizer: Optimizer, *, key: Key[Array, ""]) -> Learner:
    """Fresh networks with optimistic initial values; target networks start as copies."""
    for_values, for_inference = jax.random.split(key)
    net, algorithm = config.network, settings(config)
    mixing = MIXINGS[algorithm.mixing](problem, config, key=jax.random.fold_in(key, 2))
    start = algorithm.optimistic_init * mixing.share(problem.agents)
    rounds = config.max_rounds or problem.horizon
    values = Actors(
        problem, net.hidden_size, net.encoder, start, net.share_weights, "zero", rounds, key=for_values
    ).scaled(0.1)
    inference = make_inference(problem, net.hidden_size, net.encoder, net.inference, key=for_inference)
    moments = optimizer.init((values, mixing)), optimizer.init(inference)
    return Learner(values, mixing, inference, values, mixing, inference, *moments)


def noise(config: Config, progress: Float[Array, ""], greedy: Bool[Array, "worlds"]) -> Noise:
    """The exploration of each world at this point of training (progress from 0 to 1)."""
    algorithm = settings(config)
    rate = algorithm.epsilon + (algorithm.epsilon_final - algorithm.epsilon) * progress
    return Noise(jnp.where(greedy, 0.0, rate), jnp.where(greedy, 1.0, algorithm.stop_obey_prob))


def update(
    problem: Problem, config: Config, learner: Learner, episode: Episode, step: Step, *, key: Key[Array, ""]
) -> tuple[Learner, Losses]:
    """One gradient step of inference and values on a batch of episodes."""
    algorithm = settings(config)
    learner, batch, losses = read_batch(problem, config, learner, episode, step)
    targets = value_targets(problem, config, learner, batch, step.step_cost)
    (values, mixing), moments, loss = descend(
        step.optimizer,
        lambda parts: value_loss_of(config, parts[0], parts[1], batch, targets),
        (learner.actors, learner.mixing),
        learner.actor_moments,
        config.critic_lr * step.rate,
    )
    learner = learner._replace(
        actors=values,
        mixing=mixing,
        actor_moments=moments,
        target_actors=follow(learner.target_actors, values, algorithm.target_update_rate),
        target_mixing=follow(learner.target_mixing, mixing, algorithm.target_update_rate),
        slow_inference=follow(learner.slow_inference, learner.inference, algorithm.target_update_rate),
    )
    return learner, losses | {"critic_loss": loss}


learn = partial(off_policy.learn_replayed, update)
"""The gradient steps of an iteration, and their mean losses."""


def value_targets(
    problem: Problem, config: Config, learner: Learner, batch: Replayed, step_cost: Float[Array, ""]
) -> Float[Array, "batch rounds columns"]:
    """λ-returns, bootstrapped with the target values of the choices of the current values (Double DQN)."""
    actions = jnp.argmax(joint_scores(config, learner.actors, batch.seen), axis=-1)
    slow = joint_scores(config, learner.target_actors, batch.seen)
    values = learner.target_mixing(chosen(slow, actions), batch.seen)
    over = ends(problem, config, batch, actions)[..., None]
    return returns(config, batch, jnp.where(over, 0.0, values), step_cost)


def value_loss_of(
    config: Config,
    values: Actors,
    mixing: Mixing,
    batch: Replayed,
    targets: Float[Array, "batch rounds columns"],
) -> Float[Array, ""]:
    """Squared error at the actions taken, over rounds before the stop."""
    algorithm = settings(config)
    taken = chosen(joint_scores(config, values, batch.seen), batch.episode.actions.astype(jnp.int32))
    errors = (mixing(taken, batch.seen) - targets) ** 2
    if targets.shape[-1] == 1 and algorithm.balance_coef > 0 and taken.shape[-1] > 1:
        uneven = (taken * taken.shape[-1] - targets) ** 2
        errors += algorithm.balance_coef * jnp.mean(uneven, axis=-1, keepdims=True)
    return masked_mean(errors, jnp.broadcast_to(batch.until(-1)[..., None], errors.shape))


def settings(config: Config) -> Value:
    """The settings of this algorithm."""
    assert isinstance(config.algorithm, Value)  # this module is selected by their type
    return config.algorithm
