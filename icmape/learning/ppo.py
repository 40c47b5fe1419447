"""PPO for teams: decentralized stochastic actors, one centralized value, the same confidence reward and price.

On-policy: actors and value learn from the episodes just played, the inference network from the replay. With a simulator
that costs next to nothing, fresh data is what there is most of.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from icmape.learning import off_policy
from icmape.learning.algorithms import PPO
from icmape.learning.config import Config
from icmape.learning.guide import Labels, guide_labels, with_guide
from icmape.learning.inference import posterior_potential
from icmape.learning.off_policy import Losses, Turn, update_inference
from icmape.learning.optimize import Optimizer, adam, descend, follow, step_size
from icmape.learning.returns import episode_rewards, lambda_returns, masked_mean
from icmape.learning.rollout import Drawn, Episode, Histories, histories
from icmape.learning.scores import chosen, joint_scores
from icmape.networks import Actors, InferenceNetwork, TeamValue, make_inference
from icmape.problems import Problem

LOSSES = ("inference_loss", "critic_loss", "actor_loss", "pooled_confidence")


class Learner(NamedTuple):
    """Everything that PPO learns or averages."""

    actors: Actors
    value: TeamValue
    inference: InferenceNetwork
    target_actors: Actors
    slow_inference: InferenceNetwork
    actor_moments: PyTree
    value_moments: PyTree
    inference_moments: PyTree


class Weights(NamedTuple):
    """What changes in the actors' loss during training."""

    entropy: Float[Array, ""]
    stop_floor: Float[Array, ""]


class Fresh(NamedTuple):
    """The episodes just played with all that the losses share; leading axes (episodes, rounds)."""

    actions: Int[Array, "batch rounds agents"]
    seen: Histories
    went_on: Bool[Array, "batch rounds"]
    decided: Bool[Array, "batch rounds"]  # rounds in which there was a choice: the stop's too
    gain: Float[Array, "batch rounds"]  # return of going on, relative to stopping
    advantage: Float[Array, "batch rounds"]  # the same, relative to the value
    returns: Float[Array, "batch rounds"]  # what the value learns
    odds: Float[Array, "batch rounds"]  # chance that the episode went on, overruled STOPs included
    log_actions: Float[Array, "batch rounds agents"]  # log-probability of each action, given that the agent goes on
    going: Float[Array, "batch rounds agents"]  # probability that it does; all by the actors that played
    labels: Labels | None  # of the guide


def init(problem: Problem, config: Config, optimizer: Optimizer, *, key: Key[Array, ""]) -> Learner:
    """Fresh networks; averages start as copies."""
    for_actors, for_value, for_inference = jax.random.split(key, 3)
    net = config.network
    actors = Actors(problem, net.width, net.encoder, net.stop_bias, net.shared, key=for_actors)
    value = TeamValue(problem, net.width, net.encoder, key=for_value)
    inference = make_inference(problem, net.width, net.encoder, net.inference, key=for_inference)
    moments = [optimizer.init(part) for part in (actors, value, inference)]
    return Learner(actors, value, inference, actors, inference, *moments)


def noise(config: Config, progress: Float[Array, ""], greedy: Bool[Array, "worlds"]) -> Drawn:
    """Worlds that are not greedy draw every choice, STOP included, from the actors' own probabilities."""
    return Drawn(greedy, jnp.where(greedy, 1.0, settings(config).keep_stop))


def learn(
    problem: Problem, config: Config, learner: Learner, turn: Turn, *, key: Key[Array, ""]
) -> tuple[Learner, Losses]:
    """An iteration's gradient steps, and their mean losses."""
    ppo, optimizer = settings(config), adam(config.clip)
    for_inference, for_order = jax.random.split(key)
    learner, losses = off_policy.learn_replayed(update_inference, problem, config, learner, turn, key=for_inference)
    progress = turn.iteration.astype(jnp.float32) / config.iterations
    drawn = jax.tree.map(lambda x: x[config.greedy_worlds :], turn.fresh)  # the greedy ones teach PPO nothing
    data = prepare(problem, config, learner, drawn, turn, progress)
    weights = Weights(ppo.entropy * (ppo.entropy_end / ppo.entropy) ** progress, ppo.stop_floor ** (1.0 + progress))
    rate = step_size(config, turn.iteration)

    def step(learner: Learner, rows: Int[Array, "rows"]) -> tuple[Learner, tuple]:
        batch = jax.tree.map(lambda x: x[rows], data)
        actors, actor_moments, actor_loss = descend(
            optimizer,
            lambda actors: actor_loss_of(config, actors, batch, weights),
            learner.actors,
            learner.actor_moments,
            config.actor_rate * rate,
        )
        value, moments, value_loss = descend(
            optimizer,
            lambda value: value_loss_of(value, batch),
            learner.value,
            learner.value_moments,
            config.critic_rate * rate,
        )
        learner = learner._replace(actors=actors, actor_moments=actor_moments, value=value, value_moments=moments)
        return learner, (value_loss, actor_loss)

    orders = jax.vmap(lambda k: jax.random.permutation(k, drawn.stop.shape[0]))(jax.random.split(for_order, ppo.epochs))
    learner, (value_loss, actor_loss) = jax.lax.scan(step, learner, orders.reshape(ppo.epochs * ppo.minibatches, -1))
    learner = learner._replace(target_actors=follow(learner.target_actors, learner.actors, ppo.polyak))
    return learner, losses | {"critic_loss": jnp.mean(value_loss), "actor_loss": jnp.mean(actor_loss)}


def prepare(
    problem: Problem,
    config: Config,
    learner: Learner,
    episode: Episode,
    turn: Turn,
    progress: Float[Array, ""],
) -> Fresh:
    """Advantages, returns and the probabilities of what was chosen, by the networks that played."""
    ppo = settings(config)
    share = ppo.truth_share * jnp.maximum(1.0 - 1.5 * progress, 0.0)
    actions, index = episode.actions.astype(jnp.int32), jnp.arange(episode.actions.shape[1])[None]
    seen = jax.vmap(lambda e: histories(problem, e))(episode)
    confidence, truth = posterior_potential(problem, learner.slow_inference, seen.team, episode)
    potential = (1.0 - share) * confidence + share * truth
    rewards = jax.vmap(lambda r, p: episode_rewards(r, p, turn.step_cost, config.delta, shaped=True))(
        potential, episode.payoff
    )
    values = jax.vmap(learner.value.unroll)(seen.team)
    went_on, overruled = index < episode.stop[:, None], episode.explored
    last = index == actions.shape[1] - 1  # there STOP is forced: its value is known
    known = jnp.where(last, rewards.stopping, values)[..., None]
    nowhere = jnp.zeros_like(overruled)
    along = jax.vmap(lambda r, v, e, c: lambda_returns(r, v, e, c, ppo.trace))
    gain = along(rewards, known, ~went_on | overruled, nowhere)[..., 0]
    log_actions, going = split_choice(joint_scores(config, learner.actors, seen))
    together = jnp.prod(going, axis=-1)
    scale = jnp.sqrt(masked_mean((gain - values) ** 2, went_on)) + 1e-6
    data = Fresh(
        actions,
        seen,
        went_on,
        (index <= episode.stop[:, None]) & ~last,
        gain / scale,
        (gain - values) / scale,
        jnp.where(went_on & ~overruled, gain, 0.0),
        together + (1.0 - together) * (1.0 - ppo.keep_stop),
        chosen(log_actions, jnp.minimum(actions, problem.actions - 1)),
        going,
        guide_labels(problem, config, turn.guide, episode, seen, progress),
    )
    return jax.lax.stop_gradient(data)


def split_choice(
    scores: Float[Array, "batch rounds agents choices"],
) -> tuple[Float[Array, "batch rounds agents actions"], Float[Array, "batch rounds agents"]]:
    """Log-probabilities of the actions given that an agent goes on, and the probability that it does."""
    actions = scores[..., :-1]
    return jax.nn.log_softmax(actions), jax.nn.sigmoid(jax.nn.logsumexp(actions, axis=-1) - scores[..., -1])


def actor_loss_of(config: Config, actors: Actors, batch: Fresh, weights: Weights) -> Float[Array, ""]:
    """What to sample, when to stop, and two pulls: towards entropy, and of STOP above its floor."""
    scores = joint_scores(config, actors, batch.seen)
    log_actions, going = split_choice(scores)
    went_on = jnp.broadcast_to(batch.went_on[..., None], going.shape)
    entropy = -jnp.sum(jnp.exp(log_actions) * log_actions, axis=-1)
    loss = action_loss_of(config, log_actions, batch, went_on) - weights.entropy * masked_mean(entropy, went_on)
    decided = jnp.broadcast_to(batch.decided[..., None], going.shape)
    if config.stopping == "learned":
        loss += stop_loss_of(config, going, batch, went_on) + floor_loss_of(config, scores, decided, weights)
    return with_guide(loss, scores, batch.labels, decided)


def action_loss_of(
    config: Config,
    log_actions: Float[Array, "batch rounds agents actions"],
    batch: Fresh,
    went_on: Bool[Array, "batch rounds agents"],
) -> Float[Array, ""]:
    """PPO's clipped surrogate for each agent's action, with the team's advantage."""
    limit = settings(config).clip
    taken = chosen(log_actions, jnp.minimum(batch.actions, log_actions.shape[-1] - 1))
    ratio = jnp.exp(jnp.where(went_on, taken - batch.log_actions, 0.0))
    advantage = batch.advantage[..., None]
    return -masked_mean(jnp.minimum(ratio * advantage, jnp.clip(ratio, 1.0 - limit, 1.0 + limit) * advantage), went_on)


def stop_loss_of(
    config: Config,
    going: Float[Array, "batch rounds agents"],
    batch: Fresh,
    went_on: Bool[Array, "batch rounds agents"],
) -> Float[Array, ""]:
    """The probability of going on times what that is worth, for each agent given what the others do.

    Stopping is worth exactly 0, so both branches of the choice are known in every round that went on: no STOP need be
    drawn to learn from. An agent's say counts a little even where the others stop for sure: otherwise a team whose
    members all stop could never unlearn it, since none of them alone makes a difference.
    """
    limit, least = settings(config).clip, settings(config).least_say
    own = jnp.eye(going.shape[-1], dtype=bool)[None, None]
    others = jnp.prod(jnp.where(own, 1.0, batch.going[..., None, :]), axis=-1)
    odds = jnp.where(went_on, batch.odds[..., None], 1.0)  # behind the stop they may be too small for a float
    weight = jnp.maximum(others, least) / odds * batch.gain[..., None]
    near = jnp.clip(going, batch.going - limit, batch.going + limit)
    return -masked_mean(jnp.minimum(going * weight, near * weight), went_on)


def floor_loss_of(
    config: Config,
    scores: Float[Array, "batch rounds agents choices"],
    decided: Bool[Array, "batch rounds agents"],
    weights: Weights,
) -> Float[Array, ""]:
    """The pull of STOP above its floor: squared log-probability that it lacks."""
    missing = jax.nn.relu(jnp.log(weights.stop_floor) - jax.nn.log_softmax(scores)[..., -1])
    return settings(config).floor_weight * masked_mean(missing**2, decided)


def value_loss_of(value: TeamValue, batch: Fresh) -> Float[Array, ""]:
    """Squared error of the value over rounds in which there was a choice."""
    return masked_mean((jax.vmap(value.unroll)(batch.seen.team) - batch.returns) ** 2, batch.decided)


def settings(config: Config) -> PPO:
    """PPO's own."""
    assert isinstance(config.algorithm, PPO)  # this module is chosen by their type
    return config.algorithm
