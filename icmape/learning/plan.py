"""Plans: non-adaptive schedules, trained by policy gradient together with an inference network.

A plan is a table of logits (rounds, agents, actions) from which actions are sampled, independent of observations. Its
length is the number of rounds that a non-adaptive team needs; it sets the length of training episodes and the initial
dual variable. Several plans are trained in parallel, and the best is kept.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Integer, Key, PyTree

from icmape.learning.algorithms import Scalar
from icmape.learning.config import Config
from icmape.learning.inference_loss import inference_step, judge_for_reward, learns_from_exact
from icmape.learning.optimize import adam
from icmape.learning.scores import chosen
from icmape.learning.soft_stops import LEAST_LOG, LOG_WEIGHT
from icmape.networks import InferenceNetwork, make_inference
from icmape.play.policy import Stateless
from icmape.play.rollout import Drawn, Episode, Histories, histories, rollout
from icmape.problem import Features, Problem

NEVER = -1e9  # score of masked choices
CURVE_RATE = 0.1  # of the running means of confidence


class TablePolicy(Stateless):
    """Scores that depend on the round only; the last row is repeated. It never stops."""

    table: Float[Array, "rounds agents actions"]

    @property
    def agents(self) -> int:
        """Number of columns of the table."""
        return self.table.shape[1]

    def score(
        self, agent: Integer[Array, ""], view: Features, number: Integer[Array, ""], *, key: Key[Array, ""]
    ) -> Float[Array, "choices"]:
        """The row of this round."""
        row = self.table[jnp.minimum(number, self.table.shape[0] - 1), agent]
        return jnp.append(row, NEVER)


class PlanState(NamedTuple):
    """The state of plan training for one seed."""

    key: Key[Array, ""]
    tables: Float[Array, "plans rounds agents actions"]
    table_moments: PyTree
    inference: InferenceNetwork
    inference_moments: PyTree
    confidence: Float[Array, "plans prefixes"]  # running mean after 0, 1, 2 ... rounds


class PlanFound(NamedTuple):
    """The best plan of a seed, played greedily, and the inference network that was trained with it."""

    table: Float[Array, "rounds agents actions"]
    accuracy: Float[Array, "prefixes"]  # after 0, 1, 2 ... rounds
    length: Float[Array, ""]  # rounds of data to the target; infinite if it is not reached
    longest: Float[Array, ""]  # length for the smallest δ in the settings
    inference: InferenceNetwork

    def scores(self, follow: Scalar) -> Float[Array, "rounds agents actions"]:
        """Scores under which its preferred actions have probability `follow`, and all others equal probabilities.

        All scores are 0 if the plan does not reach the target.
        """
        follow, actions = jnp.where(jnp.isfinite(self.length), follow, 0.0), self.table.shape[-1]
        odds = jnp.maximum(follow * (actions - 1) / jnp.maximum(1.0 - follow, 1e-6), 1.0)
        return jnp.log(odds) * jax.nn.one_hot(jnp.argmax(self.table, axis=-1), actions)


def target_of(config: Config, delta: float | None = None) -> Float[Array, ""]:
    """The target confidence: 1-δ plus the margin, which is at most δ/2."""
    delta = config.delta if delta is None else delta
    return 1.0 - delta + jnp.minimum(config.dual.margin, 0.5 * delta)


def start_plans(
    problem: Problem, config: Config, rounds: int, seed: Int[Array, ""], inference: InferenceNetwork | None = None
) -> PlanState:
    """Nearly uniform tables of `rounds` rounds, with a fresh or a pretrained inference network."""
    for_tables, for_inference, key = jax.random.split(jax.random.fold_in(jax.random.key(seed), rounds), 3)
    net = config.network
    if inference is None:
        inference = make_inference(problem, net.hidden_size, net.encoder, net.inference, key=for_inference)
    shape = (config.plan.num_plans, rounds, problem.agents, problem.actions)
    tables = 0.01 * jax.random.normal(for_tables, shape)
    moments = _table_optimizer().init(tables), adam(config.max_grad_norm).init(inference)
    return PlanState(key, tables, moments[0], inference, moments[1], jnp.zeros((shape[0], rounds + 1)))


def iterate_plans(
    problem: Problem, config: Config, state: PlanState, iteration: Int[Array, ""]
) -> tuple[PlanState, dict[str, Float[Array, ""]]]:
    """One iteration of one seed: episodes, gradient steps of the inference network, a step of the tables."""
    plan = config.plan
    progress = iteration.astype(jnp.float32) / max(plan.iterations, 1)
    for_play, for_order = jax.random.split(jax.random.fold_in(state.key, iteration))
    keys = jax.random.split(for_play, (plan.num_plans, plan.num_envs))
    episodes = jax.vmap(lambda table, k: play_plan(problem, table, k, greedy=False))(state.tables, keys)
    flat = jax.tree.map(lambda x: x.reshape((-1, *x.shape[2:])), episodes)
    seen = jax.vmap(lambda e: histories(problem, e))(flat)
    state, loss = _teach(problem, config, state, flat, seen, progress, key=for_order)
    judged = judge_for_reward(problem, config, state.inference, seen.team, flat)
    share = jnp.maximum(1.0 - 2.0 * progress, 0.0)
    potential = (1.0 - share) * judged.confidence + share * LOG_WEIGHT * jnp.maximum(judged.log_truth, LEAST_LOG)
    shape = (plan.num_plans, plan.num_envs, -1)
    now = jnp.mean(judged.confidence.reshape(shape), axis=1)
    confidence = state.confidence + CURVE_RATE * (now - state.confidence)
    weights = jax.vmap(partial(window, width=plan.window, target=target_of(config)))(confidence)
    advantage = advantages(potential.reshape(shape), weights)
    tables, moments = _move(config, state, episodes, seen, advantage, progress)
    state = state._replace(tables=tables, table_moments=moments, confidence=confidence)
    return state, {"inference_loss": loss, "plan_confidence": jnp.max(confidence[:, -1])}


def play_plan(
    problem: Problem, table: Float[Array, "rounds agents actions"], keys: Key[Array, "worlds"], *, greedy: bool
) -> Episode:
    """Episodes of a table, played to its last round."""
    worlds = keys.shape[0]
    noise = Drawn(jnp.full(worlds, greedy), jnp.zeros(worlds))
    return rollout(problem, TablePolicy(table), noise, keys, jnp.full(worlds, greedy), rounds=table.shape[0] + 1)


def window(
    confidence: Float[Array, "prefixes"], *, width: Scalar, target: Float[Array, ""]
) -> Float[Array, "prefixes"]:
    """Weights of prefixes: a triangle around the length that reaches the target (or the last prefix)."""
    last = confidence.shape[0] - 1
    reached = confidence >= target
    length = jnp.maximum(jnp.where(jnp.any(reached), jnp.argmax(reached), last), 1).astype(jnp.float32)
    numbers = jnp.arange(last + 1).astype(jnp.float32)
    weights = jnp.maximum(1.0 - jnp.abs(numbers - length) / (1.0 + width * length), 0.0).at[0].set(0.0)
    return weights / jnp.sum(weights)


def advantages(
    potential: Float[Array, "plans worlds prefixes"], weights: Float[Array, "plans prefixes"]
) -> Float[Array, "plans worlds rounds"]:
    """Weighted sum of the potentials after each round, normalized over worlds; 0 if no later prefix has weight."""

    def to_go(values: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.cumsum(values[..., ::-1], axis=-1)[..., ::-1][..., 1:]

    after = to_go(weights[:, None] * potential)
    after = after - jnp.mean(after, axis=1, keepdims=True)
    counts = to_go(weights)[:, None] > 1e-6
    return jnp.where(counts, after / (jnp.std(after, axis=1, keepdims=True) + 1e-6), 0.0)


def judge_plans(problem: Problem, config: Config, state: PlanState) -> PlanFound:
    """The greedy plan that reaches the target first, on fresh worlds.

    Its length is measured by exact confidence, which has less noise than accuracy; or by accuracy if confidence comes
    from a network, which may be miscalibrated.
    """
    worlds = min(config.validation_episodes, 4096)
    keys = jax.random.split(jax.random.fold_in(state.key, 2**31 - 1), worlds)

    def curves(
        table: Float[Array, "rounds agents actions"],
    ) -> tuple[Float[Array, "prefixes"], Float[Array, ""], Float[Array, ""]]:
        episode = play_plan(problem, table, keys, greedy=True)
        seen = jax.vmap(lambda e: histories(problem, e))(episode)
        judged = judge_for_reward(problem, config, state.inference, seen.team, episode)
        accuracy = jnp.mean(judged.correct.astype(jnp.float32), axis=0)
        curve = jnp.mean(judged.confidence, axis=0) if learns_from_exact(problem, config) else accuracy
        length, longest = (
            crossing(curve, target_of(config, delta)) for delta in (config.delta, min((config.delta, *config.deltas)))
        )
        return accuracy, length, longest

    accuracy, lengths, longest = jax.lax.map(curves, state.tables)
    # if none reaches the target, the most accurate one
    best = jnp.argmin(jnp.where(jnp.isfinite(lengths), lengths, 1e6 - accuracy[:, -1]))
    return PlanFound(state.tables[best], accuracy[best], lengths[best], longest[best], state.inference)


def crossing(curve: Float[Array, "prefixes"], target: Float[Array, ""]) -> Float[Array, ""]:
    """The round at which a curve first reaches the target, interpolated; infinite if it does not."""
    reached = curve >= target
    first = jnp.argmax(reached)
    before = curve[jnp.maximum(first - 1, 0)]
    part = (target - before) / jnp.maximum(curve[first] - before, 1e-6)
    length = jnp.where(first == 0, 0.0, first.astype(jnp.float32) - 1.0 + part)
    return jnp.where(jnp.any(reached), length, jnp.inf)


def training_rounds(problem: Problem, length: float) -> int:
    """Maximal rounds of training episodes, including the stop: somewhat more than the length of the plan."""
    if not np.isfinite(length):
        return problem.horizon
    return min(problem.horizon, int(np.ceil(1.4 * length)) + 3)


def _table_optimizer() -> optax.GradientTransformation:
    return optax.scale_by_adam()


def _teach(
    problem: Problem,
    config: Config,
    state: PlanState,
    episode: Episode,
    seen: Histories,
    progress: Float[Array, ""],
    *,
    key: Key[Array, ""],
) -> tuple[PlanState, Float[Array, ""]]:
    """Gradient steps of the inference network; each episode is used once."""
    optimizer, rate = adam(config.max_grad_norm), 1.0 - 0.9 * progress

    def step(state: PlanState, rows: Int[Array, "rows"]) -> tuple[PlanState, Float[Array, ""]]:
        team, batch = jax.tree.map(lambda x: x[rows], (seen.team, episode))
        return inference_step(problem, config, optimizer, state, team, batch, rate)

    orders = jax.random.permutation(key, episode.stop.shape[0]).reshape(config.plan.gradient_steps, -1)
    state, losses = jax.lax.scan(step, state, orders)
    return state, jnp.mean(losses)


def _move(
    config: Config,
    state: PlanState,
    episodes: Episode,
    seen: Histories,
    advantage: Float[Array, "plans worlds rounds"],
    progress: Float[Array, ""],
) -> tuple[Float[Array, "plans rounds agents actions"], Any]:
    """A policy gradient step on all tables."""
    plans, worlds, rounds = advantage.shape
    offered = seen.action_mask[:, :-1].reshape(plans, worlds, rounds, *seen.action_mask.shape[2:])
    actions = episodes.actions[:, :, :-1].astype(jnp.int32)
    entropy_weight = config.plan.ent_coef * (1.0 - progress)

    def loss_of(tables: Float[Array, "plans rounds agents actions"]) -> Float[Array, ""]:
        logs = jax.nn.log_softmax(jnp.where(offered, tables[:, None], NEVER))
        taken = jax.vmap(chosen)(logs, actions)
        entropy = -jnp.sum(jnp.exp(logs) * logs, axis=-1)
        return -jnp.sum(jnp.mean(taken * advantage[..., None] + entropy_weight * entropy, axis=1))

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # optax needs both
        direction, moments = _table_optimizer().update(jax.grad(loss_of)(state.tables), state.table_moments)
    rate = config.plan.lr * (1.0 - 0.8 * progress)
    return state.tables - rate * direction, moments
