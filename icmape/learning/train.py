"""The training program: rollout, replay, learning and dual update for one seed, and for all seeds in one call.

Everything here is a pure function of the state. Keys are folded from the number of the iteration, so a run with other
chunks, or a resumed run, gives the same result.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from icmape.compiling import ONCE, SHORT, compiled
from icmape.learning import frozen, paper_td3, ppo, replay, td3, validation, value
from icmape.learning.algorithms import PPO, TD3, Frozen, PaperTD3, SoftStops, Value
from icmape.learning.config import Config
from icmape.learning.dual import Price, start_price, update_price
from icmape.learning.off_policy import Losses, Turn, learn_replayed, update_inference
from icmape.learning.optimize import adam, progress_at
from icmape.learning.plan import PlanFound, PlanState, iterate_plans, judge_plans, start_plans
from icmape.learning.replay import Replay
from icmape.learning.validation import MEASURED, Best, measure, moves_stops, select, stopping_policy, validate
from icmape.networks import InferenceNetwork
from icmape.play.devices import apart, settled, waits_for_others
from icmape.play.policy import Policy, as_policy
from icmape.play.rollout import Episode, rollout
from icmape.problem import Problem

FAULTS = ("", "inference_loss", "critic_loss", "actor_loss", "a parameter")
INFERENCE_LOSSES = ("inference_loss", "pooled_confidence")
MEMBERS_APART = 1_000_003  # distance between the seeds of members; user seeds are closer together
SIGNALS = {"confidence": "confidence", "correctness": "accuracy", "pooled": "pooled_confidence"}
MODULES: dict[type, Any] = {TD3: td3, PaperTD3: paper_td3, Value: value, PPO: ppo, Frozen: frozen}
Learner = td3.Learner | value.Learner | ppo.Learner | frozen.Learner
"""The networks of an algorithm: `actors` that play, averaged `target_actors` for the team, an inference network."""


def algorithm(config: Config) -> Any:
    """The module of the algorithm: `init`, `noise`, `learn` and the names of its LOSSES."""
    return MODULES[type(config.algorithm)]


def metrics(config: Config) -> tuple[str, ...]:
    """Names of the metrics of an iteration."""
    return (*MEASURED, *algorithm(config).LOSSES, "step_cost")


class TrainState(NamedTuple):
    """The complete state of training for one seed; a resumed run is bit-identical."""

    key: Key[Array, ""]
    learner: Learner
    replay: Replay
    price: Price
    length: Float[Array, ""]  # rounds of data that the plan needs; without a plan, the maximum
    environment_steps: Int[Array, ""]
    fault: Int[Array, ""]  # index into FAULTS; a seed with a fault keeps its last good state
    best: Best
    family: Best | None  # the best teams for the other δ (leading axis)
    validation: dict[str, Float[Array, ""]]  # of the last validation


def start_seed(
    problem: Problem,
    config: Config,
    seed: Int[Array, ""],
    plan: PlanFound | None = None,
    fixed_policy: Policy | None = None,
) -> TrainState:
    """Fresh networks, the inference network of the plan if there is one, and a replay with warm-up episodes."""
    key = jax.random.key(seed)
    for_networks, for_warmup, key = jax.random.split(key, 3)
    policies = () if fixed_policy is None else (fixed_policy,)
    learner = algorithm(config).init(problem, config, adam(config.max_grad_norm), *policies, key=for_networks)
    longest = jnp.float32((config.max_rounds or problem.horizon) - 1)
    length = longest
    if plan is not None:
        learner = learner._replace(inference=plan.inference, slow_inference=plan.inference)
        if isinstance(config.algorithm, SoftStops):  # in other algorithms scores are values
            actors = learner.actors.following(plan.scores(config.plan.follow_prob))
            learner = learner._replace(actors=actors, target_actors=actors)
        length = jnp.where(jnp.isfinite(plan.length), jnp.maximum(plan.length, 1.0), longest)
    price = start_price(config.dual, length)
    count = min(max(config.learning_starts, config.batch_size), config.buffer_size)
    explorers = jnp.zeros(count, bool)
    team = as_policy(learner.actors), learner.slow_inference
    episodes = play(problem, config, *team, jnp.zeros(()), jax.random.split(for_warmup, count), explorers)
    memory = replay.push(replay.empty(episodes, config.buffer_size), episodes)
    best = Best(
        as_policy(learner.target_actors), learner.inference, jnp.zeros(()), jnp.float32(problem.horizon), jnp.int32(0)
    )
    family = None
    if config.deltas and moves_stops(config, best.policy):
        family = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(config.deltas), *jnp.shape(x))), best)
    missing = {name: jnp.float32(jnp.nan) for name in MEASURED}
    if config.cost == "none":
        price = price._replace(step_cost=jnp.zeros(()))
    return TrainState(key, learner, memory, price, length, jnp.sum(episodes.stop), jnp.int32(0), best, family, missing)


def iterate(
    problem: Problem, config: Config, state: TrainState, iteration: Int[Array, ""], teacher: Policy | None = None
) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
    """One iteration of one seed: play, store, learn (inference network and algorithm), update ζ, maybe validate."""
    for_play, for_learning, for_validation = jax.random.split(jax.random.fold_in(state.key, iteration), 3)
    progress = progress_at(config, iteration)
    # Fine-tuning needs a validated team. The condition is equal for all seeds, so that vmap keeps one branch.
    finetuning = (progress >= 1.0 - config.finetune_fraction) & (iteration >= config.validation_interval)
    greedy = (jnp.arange(config.num_envs) < config.greedy_worlds) | finetuning
    playing = select(finetuning, state.best.policy, as_policy(state.learner.actors))
    team = playing, state.learner.slow_inference
    episodes = play(problem, config, *team, progress, jax.random.split(for_play, config.num_envs), greedy)
    memory = replay.push(state.replay, episodes)
    turn = Turn(episodes, memory, state.price.step_cost, iteration, state.length, teacher)
    learner, row = learn(problem, config, state.learner, turn, finetuning, greedy, key=for_learning)
    signal = row[SIGNALS[config.dual.signal]]
    fault = jnp.where(state.fault > 0, state.fault, find_fault(row, learner))
    fine = fault == 0
    price = state.price
    if config.cost == "dual":
        moved = update_price(price, signal, config.delta, config.dual, progress)
        following = (teacher is not None) & (progress < config.teacher.until)  # stops still imitate the teacher
        price = select(following | finetuning, price, moved)
    learner, price = select(fine, (learner, price), (state.learner, state.price))
    # The replay passes through no select and no cond, because each would copy it.
    # During fine-tuning the best team is kept, with the current inference network.
    policy = select(finetuning, state.best.policy, as_policy(learner.target_actors))
    candidate = Best(policy, learner.slow_inference, jnp.zeros(()), jnp.zeros(()), iteration + 1)
    best, family, result = jax.lax.cond(
        (iteration + 1) % config.validation_interval == 0,
        lambda best, family, old: validate(
            problem, config, candidate, best, family, keep=finetuning, key=for_validation
        ),
        lambda *old: old,
        state.best,
        state.family,
        state.validation,
    )
    state = state._replace(
        learner=learner,
        replay=memory,
        price=price,
        environment_steps=state.environment_steps + jnp.sum(episodes.stop),
        fault=fault,
        best=best,
        family=family,
        validation=result,
    )
    unlearned = [name for name in algorithm(config).LOSSES if name not in INFERENCE_LOSSES]
    row |= {name: jnp.where(finetuning, jnp.nan, row[name]) for name in unlearned}
    return state, {**row, "step_cost": price.step_cost}


def learn(
    problem: Problem,
    config: Config,
    learner: Learner,
    turn: Turn,
    finetuning: Bool[Array, ""],
    greedy: Bool[Array, "worlds"],
    *,
    key: Key[Array, ""],
) -> tuple[Learner, Losses]:
    """The gradient steps of an iteration by the algorithm; in fine-tuning, of the inference network alone.

    Returns losses and metrics, the latter from the algorithm or from the greedy episodes.
    """
    names = (*MEASURED, *algorithm(config).LOSSES)

    def on_greedy() -> dict[str, Float[Array, ""]]:
        return measure(problem, learner.slow_inference, turn.fresh, greedy)

    def all_of_it(learner: Learner) -> tuple[Learner, Losses]:
        learner, metrics = algorithm(config).learn(problem, config, learner, turn, key=key)
        return learner, (metrics if set(names) <= set(metrics) else on_greedy() | metrics)

    def inference_alone(learner: Learner) -> tuple[Learner, Losses]:
        learner, losses = learn_replayed(update_inference, problem, config, learner, turn, key=key)
        metrics = {name: losses[name] for name in INFERENCE_LOSSES} | on_greedy()
        return learner, dict.fromkeys(names, jnp.zeros(())) | metrics

    if config.finetune_fraction == 0:  # less to compile
        return all_of_it(learner)
    return jax.lax.cond(finetuning, inference_alone, all_of_it, learner)


def play(
    problem: Problem,
    config: Config,
    policy: Policy,
    inference: InferenceNetwork,
    progress: Float[Array, ""],
    keys: Key[Array, "worlds"],
    greedy: Bool[Array, "worlds"],
) -> Episode:
    """Episodes of the current team: some greedy, the others with the exploration of the algorithm."""
    policy = stopping_policy(problem, config, policy, inference)
    noise = algorithm(config).noise(config, progress, greedy)
    payoffs = config.reward == "environment"
    return rollout(problem, policy, noise, keys, greedy, payoffs=payoffs, rounds=config.max_rounds)


def find_fault(losses: dict[str, Float[Array, ""]], learner: Learner) -> Int[Array, ""]:
    """Index of the first fault in FAULTS, 0 if none."""
    fault = jnp.int32(0)
    parameters = [leaf for leaf in jax.tree.leaves(learner) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    whole = jnp.isfinite(sum(map(jnp.sum, parameters), jnp.zeros(())))
    for index in range(len(FAULTS) - 1, 0, -1):
        fine = whole if index == len(FAULTS) - 1 else jnp.isfinite(losses.get(FAULTS[index], jnp.zeros(())))
        fault = jnp.where(fine, fault, index)
    return fault


def run_chunk(
    problem: Problem,
    config: Config,
    state: TrainState,
    first: Int[Array, ""],
    count: Int[Array, ""],
    teacher: Policy | None = None,
) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
    """`count` iterations of one seed, and the means of their metrics."""

    def body(index: Int[Array, ""], carry: tuple) -> tuple:
        state, sums = carry
        state, row = iterate(problem, config, state, first + index, teacher)
        return state, jax.tree.map(jnp.add, sums, row)

    state, sums = jax.lax.fori_loop(0, count, body, (state, dict.fromkeys(metrics(config), jnp.zeros(()))))
    return state, jax.tree.map(lambda s: s / count.astype(jnp.float32), sums)


def map_seeds(function: Callable, states: PyTree) -> Any:
    """All seeds in one program: apart on several devices, and on one device vmapped on an accelerator and sequential
    on a CPU, where that is faster.
    """
    return settled(apart(partial(_map_here, function), states))


def _map_here(function: Callable, states: PyTree) -> Any:
    if _beside_others(states):
        return jax.vmap(function)(states)
    if jax.tree.leaves(states)[0].shape[0] == 1:  # without a map: about 500 slices less to compile
        only = function(jax.tree.map(lambda x: x[0], states))
        return jax.tree.map(lambda x: x[None], only)
    return jax.lax.map(function, states)


def _beside_others(states: PyTree) -> bool:
    """Whether seeds are vmapped."""
    return bool(jax.tree.leaves(states)[0].shape[0] > 1) and jax.default_backend() != "cpu"


@compiled(ONCE)
def start(
    problem: Problem,
    config: Config,
    seeds: Int[Array, "seeds"],
    plans: PlanFound | None = None,
    fixed_policy: Policy | None = None,
) -> TrainState:
    """Initial states of all members of all seeds; the members of a seed are adjacent."""
    plans = jax.tree.map(lambda x: jnp.repeat(x, config.population_size, axis=0), plans)
    rows = member_seeds(config, seeds), plans
    return map_seeds(lambda row: start_seed(problem, config, row[0], row[1], fixed_policy), rows)


def member_seeds(config: Config, seeds: Int[Array, "seeds"]) -> Int[Array, "members"]:
    """The seeds of all members; the first member has the seed itself."""
    apart = jnp.arange(config.population_size, dtype=jnp.uint32) * jnp.uint32(MEMBERS_APART)
    drawn = seeds.astype(jnp.uint32)[:, None] + apart[None]
    return (drawn & jnp.uint32(2**31 - 1)).reshape(-1).astype(jnp.int32)


@compiled(SHORT, donate_argnames="states")
def settle(problem: Problem, config: Config, states: TrainState) -> TrainState:
    """Judge the best teams of all seeds once more at the end of training."""

    def settle_seed(state: TrainState) -> TrainState:
        key = jax.random.fold_in(state.key, 2**31 - 2)
        best, family = validation.settle(problem, config, state.best, state.family, key=key)
        return state._replace(best=best, family=family)

    return map_seeds(settle_seed, states)


@compiled(ONCE, static_argnames="rounds")
def begin_plans(
    problem: Problem,
    config: Config,
    rounds: int,
    seeds: Int[Array, "seeds"],
    inference: InferenceNetwork | None = None,
) -> PlanState:
    """Initial plans of `rounds` rounds for all seeds."""
    return map_seeds(lambda row: start_plans(problem, config, rounds, *row), (seeds, inference))


@compiled(SHORT, donate_argnames="states")
def advance_plans(
    problem: Problem, config: Config, states: PlanState, first: Int[Array, ""], count: Int[Array, ""]
) -> tuple[PlanState, dict[str, Float[Array, "seeds"]]]:
    """`count` iterations of the plans of all seeds, and the metrics of the last one."""

    def run(state: PlanState) -> tuple:
        no_metrics = dict.fromkeys(("inference_loss", "plan_confidence"), jnp.zeros(()))
        body = lambda index, carry: iterate_plans(problem, config, carry[0], first + index)  # noqa: E731
        return jax.lax.fori_loop(0, count, body, (state, no_metrics))

    return map_seeds(run, states)


@compiled(SHORT)
def choose_plans(problem: Problem, config: Config, states: PlanState) -> PlanFound:
    """The best plan of every seed."""
    return map_seeds(lambda state: judge_plans(problem, config, state), states)


@partial(jax.jit, donate_argnames="states")
def advance(
    problem: Problem,
    config: Config,
    states: TrainState,
    first: Int[Array, ""],
    count: Int[Array, ""],
    teacher: Policy | None = None,
) -> tuple[TrainState, dict[str, Float[Array, "seeds"]]]:
    """`count` iterations of all seeds. A seed with a fault does not change and has no metrics."""
    no_metrics = dict.fromkeys(metrics(config), jnp.full((), jnp.nan))

    def run(state: TrainState) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
        return run_chunk(problem, config, state, first, count, teacher)

    def alone(state: TrainState) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
        return jax.lax.cond(state.fault == 0, run, lambda s: (s, no_metrics), state)

    def beside_others(state: TrainState) -> tuple[TrainState, dict[str, Float[Array, ""]]]:
        # A cond here would depend on the seed, so that vmap would batch everything inside, including the number of the
        # iteration, and execute both branches of every inner cond: validation, fine-tuning and updates of the actors.
        # On several devices a seed, those of a seed that does nothing would keep the others waiting for ever.
        return select(state.fault == 0, run(state), (state, no_metrics))

    return map_seeds(beside_others if _beside_others(states) or waits_for_others() else alone, states)
