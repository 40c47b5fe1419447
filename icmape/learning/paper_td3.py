"""TD3 as described in the paper: twin centralized critics, target networks, delayed actors, Gumbel-Softmax.

The reward for confidence comes at the stop only, the value of STOP is learned like that of actions, targets are
one-step, and actions are sampled from the policy. `td3` is our improved version.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from icmape.learning import off_policy
from icmape.learning.algorithms import PaperTD3
from icmape.learning.config import Config
from icmape.learning.off_policy import Losses, Replayed, Step, Turn, ends, read_batch, returns
from icmape.learning.optimize import Optimizer, descend, follow
from icmape.learning.returns import masked_mean
from icmape.learning.scores import joint_scores
from icmape.learning.td3 import Learner
from icmape.learning.teacher import Labels, teacher_labels, with_teacher
from icmape.networks import Actors, Critic, make_inference
from icmape.play.rollout import Drawn, Episode, Histories
from icmape.problem import Problem

__all__ = ["LOSSES", "init", "learn", "noise"]
LOSSES = ("explored_tau", "inference_loss", "critic_loss", "actor_loss", "pooled_confidence")


def init(problem: Problem, config: Config, optimizer: Optimizer, *, key: Key[Array, ""]) -> Learner:
    """Fresh networks; target networks start as copies. The actors do not read the number of the round."""
    for_actors, for_first, for_second, for_inference = jax.random.split(key, 4)
    net, choices = config.network, problem.actions + 1
    actors = Actors(problem, net.hidden_size, net.encoder, net.stop_bias, net.share_weights, key=for_actors)
    critics = (
        Critic(problem, net.hidden_size, net.encoder, choices, key=for_first),
        Critic(problem, net.hidden_size, net.encoder, choices, key=for_second),
    )
    inference = make_inference(problem, net.hidden_size, net.encoder, net.inference, key=for_inference)
    moments = [optimizer.init(part) for part in (actors, critics, inference)]
    return Learner(actors, critics, inference, actors, critics, inference, *moments)


def noise(config: Config, progress: Float[Array, ""], greedy: Bool[Array, "worlds"]) -> Drawn:
    """In worlds that are not greedy, every choice is sampled from the policy, including STOP."""
    return Drawn(greedy, jnp.where(greedy, 1.0, settings(config).stop_obey_prob))


def learn(
    problem: Problem, config: Config, learner: Learner, turn: Turn, *, key: Key[Array, ""]
) -> tuple[Learner, Losses]:
    """The gradient steps of an iteration, and their mean losses."""
    learner, losses = off_policy.learn_replayed(update, problem, config, learner, turn, key=key)
    return learner, off_policy.mean_over_updates(config, losses, turn, settings(config).policy_delay)


def update(
    problem: Problem, config: Config, learner: Learner, episode: Episode, step: Step, *, key: Key[Array, ""]
) -> tuple[Learner, Losses]:
    """One gradient step of inference and critics on a batch, and of the actors every `policy_delay` steps."""
    td3 = settings(config)
    learner, batch, losses = read_batch(problem, config, learner, episode, step, shaped=False)
    targets = critic_targets(problem, config, learner, batch, step.step_cost)
    critics, moments, critic_loss = descend(
        step.optimizer,
        lambda critics: critic_loss_of(critics, batch, targets),
        learner.critics,
        learner.critic_moments,
        config.critic_lr * step.rate,
    )
    learner = learner._replace(critics=critics, critic_moments=moments)
    learner, actor_loss = jax.lax.cond(
        step.number % td3.policy_delay == td3.policy_delay - 1,
        lambda learner: _update_actors(problem, config, learner, batch, step, key),
        lambda learner: (learner, jnp.zeros(())),
        learner,
    )
    return learner, losses | {"critic_loss": critic_loss, "actor_loss": actor_loss}


def _update_actors(
    problem: Problem, config: Config, learner: Learner, batch: Replayed, step: Step, key: Key[Array, ""]
) -> tuple[Learner, Float[Array, ""]]:
    td3 = settings(config)
    summaries = [jax.vmap(critic.summaries)(batch.seen.team) for critic in learner.critics]
    labels = teacher_labels(problem, config, step.teacher, batch.episode, batch.seen, step.progress)
    actors, moments, loss = descend(
        step.optimizer,
        lambda actors: actor_loss_of(config, actors, learner.critics, summaries, batch, labels, key=key),
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


def critic_targets(
    problem: Problem, config: Config, learner: Learner, batch: Replayed, step_cost: Float[Array, ""]
) -> Float[Array, "batch rounds agents"]:
    """λ-returns along the stored episodes, bootstrapped with the choices of the target actors."""
    actions = jnp.argmax(joint_scores(config, learner.target_actors, batch.seen), axis=-1)
    values = _smaller_value(learner.target_critics, batch.seen, actions)
    if config.stopping == "threshold":
        over = ends(problem, config, batch, actions)[..., None]
        values = jnp.where(over, batch.rewards.stopping[..., None], values)
    return returns(config, batch, values, step_cost)


def critic_loss_of(
    critics: tuple[Critic, Critic],
    batch: Replayed,
    targets: Float[Array, "batch rounds agents"],
) -> Float[Array, ""]:
    """Squared error of both critics at the choices taken, over all rounds up to the stop."""
    counted = jnp.broadcast_to(batch.until(0)[..., None], targets.shape)
    actions = batch.episode.actions.astype(jnp.int32)
    errors = [(_value_of(critic, batch.seen, actions) - targets) ** 2 for critic in critics]
    return masked_mean(errors[0] + errors[1], counted)


def actor_loss_of(
    config: Config,
    actors: Actors,
    critics: tuple[Critic, Critic],
    summaries: list[Float[Array, "batch rounds summary"]],
    batch: Replayed,
    labels: Labels | None = None,
    *,
    key: Key[Array, ""],
) -> Float[Array, ""]:
    """Minus the value of the relaxed joint action, over all rounds up to the stop except the last one."""
    td3 = settings(config)
    scores = joint_scores(config, actors, batch.seen)
    relaxed = jax.nn.softmax((scores + jax.random.gumbel(key, scores.shape)) / td3.gumbel_temperature)
    value = jnp.sum(relaxed * _values(td3, critics, summaries, relaxed), axis=-1)
    last = batch.rounds == batch.confidence.shape[1] - 1
    counted = jnp.broadcast_to((batch.until(0) & ~last)[..., None], value.shape)
    loss = -value
    if td3.stop_consistency_coef > 0:
        stopped = batch.episode.greedy[:, None] & (batch.rounds == batch.episode.stop[:, None])
        reluctance = -jax.nn.log_softmax(scores)[..., -1]
        loss += jnp.where(stopped[..., None], td3.stop_consistency_coef * reluctance, 0.0)
    return with_teacher(masked_mean(loss, counted), scores, labels, counted)


def _values(
    td3: PaperTD3,
    critics: tuple[Critic, Critic],
    summaries: list[Float[Array, "batch rounds summary"]],
    joint: Float[Array, "batch rounds agents choices"],
) -> Float[Array, "batch rounds agents choices"]:
    """Values for the actors: of every choice of each agent, given the choices of the others."""
    used = 1 if td3.actor_value == "q1" else 2
    values = [jax.vmap(jax.vmap(c.values))(s, joint) for c, s in zip(critics[:used], summaries[:used], strict=True)]
    return values[0] if used == 1 else jnp.minimum(*values)


def _value_of(
    critic: Critic, seen: Histories, actions: Int[Array, "batch rounds agents"]
) -> Float[Array, "batch rounds agents"]:
    """Value of a joint action for each agent."""
    choices = critic.choices
    joint = jax.nn.one_hot(actions, choices)
    values = jax.vmap(jax.vmap(critic.values))(jax.vmap(critic.summaries)(seen.team), joint)
    indices = jnp.minimum(actions, choices - 1)[..., None]
    return jnp.take_along_axis(values, indices, axis=-1)[..., 0]


def _smaller_value(
    critics: tuple[Critic, Critic], seen: Histories, actions: Int[Array, "batch rounds agents"]
) -> Float[Array, "batch rounds agents"]:
    return jnp.minimum(*(_value_of(critic, seen, actions) for critic in critics))


def settings(config: Config) -> PaperTD3:
    """The settings of this algorithm."""
    assert isinstance(config.algorithm, PaperTD3)  # this module is selected by their type
    return config.algorithm
