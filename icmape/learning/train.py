"""The training program: play, store, learn, price, for one seed; and the same for all seeds in one compiled call.

Everything here is a pure function of the state. Keys are folded from the iteration's number, so a run cut into other
chunks, or resumed, is the same run.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from icmape.learning import replay, td3
from icmape.learning.config import Config
from icmape.learning.dual import update_step_cost
from icmape.learning.optimize import adam
from icmape.learning.policy import LearnedPolicy
from icmape.learning.replay import Replay
from icmape.learning.returns import masked_mean
from icmape.learning.rollout import Episode, Histories, histories, play_greedy, rollout
from icmape.learning.td3 import Learner
from icmape.networks import Actors, Inference
from icmape.problems import Problem

MEASURED = ("accuracy", "confidence", "tau", "forced")
METRICS = (*MEASURED, *td3.LOSSES, "step_cost")
"""What every iteration reports."""
FAULTS = ("", "inference_loss", "critic_loss", "actor_loss", "a parameter")


class Best(NamedTuple):
    """The best team so far, by validation on worlds of its own."""

    actors: Actors
    inference: Inference
    accuracy: Float[Array, ""]
    tau: Float[Array, ""]
    iteration: Int[Array, ""]


class TrainState(NamedTuple):
    """All of a run's state for one seed: with it, training goes on bit for bit."""

    key: Key[Array, ""]
    learner: Learner
    replay: Replay
    step_cost: Float[Array, ""]  # ζ
    environment_steps: Int[Array, ""]
    fault: Int[Array, ""]  # index into FAULTS; a seed with one stays as it was before it
    best: Best
    validation: dict[str, Float[Array, ""]]  # of the last validation


def start_seed(problem: Problem, config: Config, seed: Int[Array, ""]) -> TrainState:
    """Fresh networks, and a replay with the warm-up episodes in it."""
    key = jax.random.key(seed)
    for_networks, for_warmup, key = jax.random.split(key, 3)
    learner = td3.init(problem, config, adam(config.clip), key=for_networks)
    count = min(max(config.warmup, config.batch), config.replay)
    policy = LearnedPolicy(learner.actors)
    explorers = jnp.zeros(count, bool)
    episodes = rollout(
        problem,
        policy,
        td3.noise(config, jnp.zeros(()), explorers),
        jax.random.split(for_warmup, count),
        explorers,
    )
    memory = replay.push(replay.empty(problem, episodes, config.replay), episodes)
    best = Best(learner.actors, learner.inference, jnp.zeros(()), jnp.float32(problem.horizon), jnp.int32(0))
    nothing = {name: jnp.full((), jnp.nan) for name in MEASURED}
    played = jnp.sum(episodes.stop)
    return TrainState(key, learner, memory, jnp.float32(config.dual.start), played, jnp.int32(0), best, nothing)


def iterate(
    problem: Problem, config: Config, state: TrainState, iteration: Int[Array, ""]
) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
    """One iteration of one seed."""
    for_play, for_learning, for_validation = jax.random.split(jax.random.fold_in(state.key, iteration), 3)
    progress = iteration.astype(jnp.float32) / config.iterations
    episodes = play(problem, config, state.learner, progress, key=for_play)
    memory = replay.push(state.replay, episodes)
    learner, losses = learn(problem, config, state, memory, iteration, key=for_learning)

    measured = measure(problem, state.learner.inference, episodes, episodes.greedy)
    signal = {
        "confidence": measured["confidence"],
        "correctness": measured["accuracy"],
        "pooled": losses["pooled_confidence"],
    }[config.dual.signal]
    fault = jnp.where(state.fault > 0, state.fault, find_fault(losses, learner))
    fine = fault == 0
    step_cost = update_step_cost(state.step_cost, signal, config.delta, config.dual)
    learner, step_cost = _select(fine, (learner, step_cost), (state.learner, state.step_cost))
    # The replay goes through no select and no cond: each would copy it.
    best, validation = jax.lax.cond(
        (iteration + 1) % config.validate_every == 0,
        lambda best, old: validate(problem, config, learner, best, iteration + 1, key=for_validation),
        lambda best, old: (best, old),
        state.best,
        state.validation,
    )
    state = state._replace(
        learner=learner,
        replay=memory,
        step_cost=step_cost,
        environment_steps=state.environment_steps + jnp.sum(episodes.stop),
        fault=fault,
        best=best,
        validation=validation,
    )
    return state, {**measured, **losses, "step_cost": step_cost}


def play(
    problem: Problem, config: Config, learner: Learner, progress: Float[Array, ""], *, key: Key[Array, ""]
) -> Episode:
    """An iteration's episodes: the first of them greedy, the others explored."""
    greedy = jnp.arange(config.worlds) < round(config.worlds * config.greedy_share)
    noise = td3.noise(config, progress, greedy)
    return rollout(problem, LearnedPolicy(learner.actors), noise, jax.random.split(key, config.worlds), greedy)


def learn(
    problem: Problem,
    config: Config,
    state: TrainState,
    memory: Replay,
    iteration: Int[Array, ""],
    *,
    key: Key[Array, ""],
) -> tuple[Learner, dict[str, Float[Array, ""]]]:
    """An iteration's gradient steps, and their mean losses."""
    rate = 1.0 + (config.rate_end - 1.0) * iteration.astype(jnp.float32) / config.iterations
    every = config.algorithm.actor_every

    def one(learner: Learner, index: Int[Array, ""]) -> tuple[Learner, dict[str, Float[Array, ""]]]:
        for_batch, for_update = jax.random.split(jax.random.fold_in(key, index))
        batch = replay.draw(memory, config.batch, key=for_batch)
        turn = (iteration * config.updates + index) % every == every - 1
        return td3.update(
            problem, config, adam(config.clip), learner, batch, state.step_cost, turn, rate, key=for_update
        )

    indices = jnp.arange(config.updates)
    learner, losses = jax.lax.scan(one, state.learner, indices)
    turns = jnp.sum(((iteration * config.updates + indices) % every == every - 1).astype(jnp.float32))
    means = jax.tree.map(jnp.mean, losses)
    return learner, means | {"actor_loss": jnp.sum(losses["actor_loss"]) / jnp.maximum(turns, 1.0)}


def measure(
    problem: Problem, inference: Inference, episodes: Episode, judged: Bool[Array, "worlds"]
) -> dict[str, Float[Array, ""]]:
    """Mean accuracy and confidence at the stop, τ and the share forced at the horizon, over the judged episodes."""

    def one(episode: Episode) -> tuple:
        seen: Histories = histories(problem, episode)
        scores = inference.unroll(seen.team)[episode.stop]
        space = problem.hypotheses
        stop = episode.stop.astype(jnp.float32)
        right = space.correct(space.decide(scores), episode.hypothesis).astype(jnp.float32)
        return right, space.confidence(scores), stop + 1.0, (stop == problem.horizon - 1).astype(jnp.float32)

    columns = jax.vmap(one)(episodes)
    return {name: masked_mean(column, judged) for name, column in zip(MEASURED, columns, strict=True)}


def validate(
    problem: Problem,
    config: Config,
    learner: Learner,
    best: Best,
    iteration: Int[Array, ""],
    *,
    key: Key[Array, ""],
) -> tuple[Best, dict[str, Float[Array, ""]]]:
    """Judge the averaged team on fresh worlds, and keep it if it is the best so far.

    A team that meets the target beats one that does not; among those that meet it the faster one wins, among the others
    the more accurate one.
    """
    worlds = config.validation_worlds
    team = learner.target_actors, learner.slow_inference
    episodes = play_greedy(problem, LearnedPolicy(team[0]), jax.random.split(key, worlds))
    result = measure(problem, team[1], episodes, jnp.ones(worlds, bool))
    needed = needed_accuracy(config)
    meets, met = result["accuracy"] >= needed, best.accuracy >= needed
    better = jnp.where(
        meets & met,
        result["tau"] < best.tau,
        jnp.where(meets == met, result["accuracy"] > best.accuracy, meets),
    )
    candidate = Best(*team, result["accuracy"], result["tau"], iteration)
    return _select(better, candidate, best), result


def needed_accuracy(config: Config) -> float:
    """What a validation must show: a standard error more than 1-δ, since the luckiest of many is chosen."""
    error = (config.delta * (1.0 - config.delta) / config.validation_worlds) ** 0.5
    return min(1.0 - config.delta + error, 1.0)


def find_fault(losses: dict[str, Float[Array, ""]], learner: Learner) -> Int[Array, ""]:
    """Which of FAULTS holds, 0 if none."""
    fault = jnp.int32(0)
    parameters = jax.tree.leaves((learner.actors, learner.critics, learner.inference))
    whole = jnp.isfinite(sum(map(jnp.sum, parameters), jnp.zeros(())))
    for index in range(len(FAULTS) - 1, 0, -1):
        fine = whole if index == len(FAULTS) - 1 else jnp.isfinite(losses[FAULTS[index]])
        fault = jnp.where(fine, fault, index)
    return fault


def run_chunk(
    problem: Problem, config: Config, state: TrainState, first: Int[Array, ""], count: Int[Array, ""]
) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
    """Some iterations of one seed, and the means of their metrics."""

    def body(index: Int[Array, ""], carry: tuple) -> tuple:
        state, sums = carry
        state, metrics = iterate(problem, config, state, first + index)
        return state, jax.tree.map(jnp.add, sums, metrics)

    state, sums = jax.lax.fori_loop(0, count, body, (state, dict.fromkeys(METRICS, jnp.zeros(()))))
    return state, jax.tree.map(lambda s: s / count.astype(jnp.float32), sums)


def map_seeds(function: Callable, states: PyTree) -> Any:
    """All seeds in one program: side by side on an accelerator, one after the other on a CPU, where that is faster."""
    if jax.tree.leaves(states)[0].shape[0] == 1:  # nothing to map: half a thousand slices less to compile
        only = function(jax.tree.map(lambda x: x[0], states))
        return jax.tree.map(lambda x: x[None], only)
    if jax.default_backend() == "cpu":
        return jax.lax.map(function, states)
    return jax.vmap(function)(states)


@partial(jax.jit, static_argnames="config")
def start(problem: Problem, config: Config, seeds: Int[Array, "seeds"]) -> TrainState:
    """The states of all seeds before the first iteration."""
    return map_seeds(partial(start_seed, problem, config), seeds)


@partial(jax.jit, static_argnames="config", donate_argnames="states")
def advance(
    problem: Problem, config: Config, states: TrainState, first: Int[Array, ""], count: Int[Array, ""]
) -> tuple[TrainState, dict[str, Float[Array, "seeds"]]]:
    """Some iterations of all seeds. A seed that has failed costs nothing more where seeds run one after the other."""

    def one(state: TrainState) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
        nothing = dict.fromkeys(METRICS, jnp.full((), jnp.nan))
        return jax.lax.cond(
            state.fault == 0,
            lambda s: run_chunk(problem, config, s, first, count),
            lambda s: (s, nothing),
            state,
        )

    return map_seeds(one, states)


def _select(condition: Bool[Array, ""], yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
