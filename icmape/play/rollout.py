"""Rollouts in many worlds at once. The cost of a round is constant, and the loop ends with the last stop."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.play.devices import share
from icmape.play.policy import Policy, Round, actions_for
from icmape.problem import Features, Problem

RELAY = 1  # folded into the key of a round's step, for the way of its stop bit


class Episode(NamedTuple):
    """A finished episode in storage types. The decision of round t was made after `observations[t]`.

    The episode ended in round `stop`, before sampling. actions[stop] shows which agents chose STOP (the number after
    the last action); later rows are padding.
    """

    actions: Integer[Array, "*batch rounds agents"]
    observations: PyTree
    explored: Bool[Array, "*batch rounds"]
    stop: Int[Array, "*batch"]
    hypothesis: Integer[Array, "..."]
    greedy: Bool[Array, "*batch"]
    payoff: Float[Array, "*batch rounds"] | None = None  # the reward of the environment in each round, if requested
    margin: Float[Array, "*batch rounds"] | None = None  # of STOP (`stop_margin`) in each round, if requested


class Noise(eqx.Module):
    """ε-greedy exploration."""

    rate: Float[Array, "*worlds"]  # probability of a random action, per agent and round
    keep_stop: Float[Array, "*worlds"]  # probability that a STOP is obeyed, for all agents at once

    def choose(
        self, scores: Float[Array, "agents choices"], allowed: Bool[Array, "agents actions"], *, key: Key[Array, ""]
    ) -> tuple[Int[Array, "agents"], Bool[Array, ""]]:
        """The greedy choices with noise, and whether any of them differs from the greedy one."""
        for_stop, for_when, for_what = jax.random.split(key, 3)
        agents, actions = allowed.shape
        best = jnp.argmax(jnp.where(allowed, scores[:, :-1], -jnp.inf), axis=1)
        stops = scores[:, -1] > jnp.take_along_axis(scores, best[:, None], axis=1)[:, 0]
        greedy = jnp.where(stops, actions, best)
        obeyed = jax.random.uniform(for_stop) < self.keep_stop
        obeying = jnp.where(obeyed, greedy, best)
        tried = jax.random.categorical(for_what, jnp.where(allowed, 0.0, -jnp.inf), axis=1)
        noisy = jax.random.uniform(for_when, (agents,)) < self.rate
        noisy = noisy & (obeying < actions)  # noise on actions does not override STOP
        chosen = jnp.where(noisy, tried, obeying)
        return chosen, jnp.any(chosen != greedy)


class Drawn(eqx.Module):
    """Actions sampled from the softmax of the scores; in greedy worlds the largest score."""

    greedy: Bool[Array, "*worlds"]
    keep_stop: Float[Array, "*worlds"]  # probability that a STOP is obeyed, for all agents at once

    def choose(
        self, scores: Float[Array, "agents choices"], allowed: Bool[Array, "agents actions"], *, key: Key[Array, ""]
    ) -> tuple[Int[Array, "agents"], Bool[Array, ""]]:
        """The sampled choices, and whether a sampled STOP was overruled."""
        for_stop, for_what, for_rest = jax.random.split(key, 3)
        actions = allowed.shape[1]
        heat = jnp.where(self.greedy, 0.0, 1.0)
        options = jnp.concatenate([jnp.where(allowed, scores[:, :-1], -jnp.inf), scores[:, -1:]], axis=1)
        first = jnp.argmax(options + heat * jax.random.gumbel(for_what, options.shape), axis=1)
        arms = options[:, :-1]
        instead = jnp.argmax(arms + heat * jax.random.gumbel(for_rest, arms.shape), axis=1)
        over = jnp.any(first == actions) & (jax.random.uniform(for_stop) >= self.keep_stop)
        return jnp.where(over, instead, first), over


Exploration = Noise | Drawn
"""Exploration in many worlds: its arrays have a leading axis of worlds."""


def rollout(
    problem: Problem,
    policy: Policy,
    noise: Exploration,
    keys: Key[Array, "worlds"],
    greedy: Bool[Array, "worlds"],
    *,
    payoffs: bool = False,
    margins: bool = False,
    rounds: int | None = None,
) -> Episode:
    """One episode in each of many fresh worlds, of at most `rounds` rounds (default: the horizon)."""
    agents, horizon = jnp.arange(problem.agents), min(problem.horizon, rounds or problem.horizon)
    last = horizon - 1
    keys = share(keys)
    for_world, for_start, for_rounds = jnp.unstack(jax.vmap(_keys)(keys), axis=1)
    world = jax.vmap(lambda key: problem.sample(key=key))(for_world)
    state, observation = jax.vmap(lambda w, key: problem.start(w, key=key))(world, for_start)
    worlds, options = keys.shape[0], jax.vmap(partial(actions_for, problem, policy))

    def play(world: Any, state: PyTree, seen: Round, mind: PyTree, noise: Exploration, key: Key[Array, ""]) -> tuple:
        for_policy, for_noise, for_step = jax.random.split(jax.random.fold_in(key, seen.number), 3)
        mind, scores = policy.decide(mind, seen, key=for_policy)
        heard = jax.vmap(problem.stop_mask)(seen.memories)
        scores = scores.at[:, -1].set(jnp.where(heard, scores[:, -1], -jnp.inf))
        allowed = options(seen.memories)
        chosen, explored = noise.choose(scores, allowed, key=for_noise)
        chosen = jnp.where(seen.number == last, problem.actions, chosen)
        state, chosen, over = problem.relay(state, chosen, key=jax.random.fold_in(for_step, RELAY))
        acted = executed(problem, chosen)
        state, observation = problem.step(world, state, acted, key=for_step)
        memories = jax.vmap(problem.update_memory)(seen.memories, agents, acted, observation)
        payoff = problem.payoff(world, observation) if payoffs else None
        margin = stop_margin(scores, allowed) if margins else None
        return mind, state, chosen, over, explored, observation, memories, payoff, margin

    def body(carry: tuple) -> tuple:
        t, done, state, seen, mind, episode = carry
        out = jax.vmap(lambda w, s, v, *others: play(w, s, v._replace(number=t), *others))(
            world, state, seen, mind, noise, for_rounds
        )
        mind, state, chosen, over, explored, observation, memories, payoff, margin = out
        stopping = ~done & over
        stored = jnp.where(done[:, None], 0, chosen).astype(episode.actions.dtype)
        ended = done | stopping
        episode = episode._replace(
            actions=episode.actions.at[:, t].set(stored),
            explored=episode.explored.at[:, t].set(explored & ~done),
            stop=jnp.where(stopping, t, episode.stop),
            observations=jax.tree.map(
                lambda all_, new: all_.at[:, t + 1].set(_where(ended, jnp.zeros_like(new), new), mode="drop"),
                episode.observations,
                observation,
            ),
            payoff=None if payoff is None else episode.payoff.at[:, t].set(jnp.where(ended, 0.0, payoff)),
            margin=None if margin is None else episode.margin.at[:, t].set(jnp.where(done, 0.0, margin)),
        )
        seen = Round(seen.number, jax.vmap(jax.vmap(problem.features))(memories), chosen, observation, memories)
        return t + 1, ended, state, seen, mind, episode

    memories = jax.vmap(lambda first: jax.vmap(problem.init_memory)(agents, first))(observation)
    seen = Round(
        jnp.zeros(worlds, jnp.int32),
        jax.vmap(jax.vmap(problem.features))(memories),
        jnp.full((worlds, problem.agents), -1),
        observation,
        memories,
    )
    mind = jax.tree.map(lambda x: jnp.broadcast_to(x, (worlds, *jnp.shape(x))), policy.start())
    episode = Episode(
        actions=jnp.zeros((worlds, horizon, problem.agents), action_type(problem)),
        observations=jax.tree.map(
            lambda first: jnp.zeros((worlds, horizon, *first.shape[1:]), first.dtype).at[:, 0].set(first), observation
        ),
        explored=jnp.zeros((worlds, horizon), bool),
        stop=jnp.full(worlds, last),
        hypothesis=world.hypothesis,
        greedy=greedy,
        payoff=jnp.zeros((worlds, horizon)) if payoffs else None,
        margin=jnp.zeros((worlds, horizon)) if margins else None,
    )
    carry = (jnp.int32(0), jnp.zeros(worlds, bool), state, seen, mind, episode)
    return jax.lax.while_loop(lambda c: (c[0] < horizon) & ~jnp.all(c[1]), body, carry)[-1]


def play_greedy(problem: Problem, policy: Policy, keys: Key[Array, "worlds"]) -> Episode:
    """Episodes without exploration, as in evaluations."""
    worlds = keys.shape[0]
    noise = Noise(jnp.zeros(worlds), jnp.ones(worlds))
    return rollout(problem, policy, noise, keys, jnp.ones(worlds, bool))


def play_past_stops(problem: Problem, policy: Policy, keys: Key[Array, "worlds"], rounds: int | None = None) -> Episode:
    """The episodes of `play_greedy`, continued to the last round: every STOP is overruled, and its margin is stored."""
    worlds = keys.shape[0]
    everyone = jnp.ones(worlds, bool)
    return rollout(problem, policy, Drawn(everyone, jnp.zeros(worlds)), keys, everyone, margins=True, rounds=rounds)


def stop_margin(scores: Float[Array, "agents choices"], allowed: Bool[Array, "agents actions"]) -> Float[Array, ""]:
    """The score of STOP less that of the best allowed action, for the agent with the largest difference.

    A greedy team stops where it is above 0.
    """
    best = jnp.max(jnp.where(allowed, scores[:, :-1], -jnp.inf), axis=1)
    return jnp.max(scores[:, -1] - best)


class Histories(NamedTuple):
    """Features and action masks at each round of an episode."""

    local: Features  # agents, rounds, ...
    team: Features  # rounds, ...
    action_mask: Bool[Array, "*batch rounds agents actions"]
    stop_mask: Bool[Array, "*batch rounds agents"]


def memories_at(problem: Problem, episode: Episode, number: Int[Array, ""]) -> PyTree:
    """The memories of all agents in one round of a stored episode."""
    agents = jnp.arange(problem.agents)

    def advance(t: Int[Array, ""], memories: PyTree) -> PyTree:
        acted = executed(problem, episode.actions[t])
        observation = jax.tree.map(lambda x: x[t + 1], episode.observations)
        return jax.vmap(problem.update_memory)(memories, agents, acted, observation)

    start = jax.vmap(problem.init_memory)(agents, jax.tree.map(lambda x: x[0], episode.observations))
    return jax.lax.fori_loop(0, number, advance, start)


def histories(problem: Problem, episode: Episode) -> Histories:
    """Features and masks of a stored episode, recomputed from its actions and observations."""
    agents = jnp.arange(problem.agents)
    first = jax.tree.map(lambda x: x[0], episode.observations)
    later = jax.tree.map(lambda x: x[1:], episode.observations)
    start = jax.vmap(problem.init_memory)(agents, first)

    def read(memories: PyTree) -> Histories:
        local, offered = jax.vmap(problem.features)(memories), jax.vmap(problem.learner_action_mask)(memories)
        return Histories(local, problem.team_features(memories), offered, jax.vmap(problem.stop_mask)(memories))

    def advance(memories: PyTree, moved: tuple) -> tuple[PyTree, Histories]:
        actions, observation = moved
        acted = executed(problem, actions)
        memories = jax.vmap(problem.update_memory)(memories, agents, acted, observation)
        return memories, read(memories)

    _, later_rounds = jax.lax.scan(advance, start, (episode.actions[:-1], later))
    all_rounds = jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), read(start), later_rounds)
    return all_rounds._replace(local=jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), all_rounds.local))


def policy_scores(
    problem: Problem, policy: Policy, episode: Episode, seen: Histories, rounds: Int[Array, ""] | int
) -> Float[Array, "rounds agents choices"]:
    """Scores of a local policy in the first rounds of a stored episode of any policy; later rows are 0."""

    def decide(number: Int[Array, ""], carry: tuple) -> tuple:
        state, rows = carry
        before = jnp.where(number == 0, -1, episode.actions[number - 1].astype(jnp.int32))
        observation = jax.tree.map(lambda x: x[number], episode.observations)
        local = jax.tree.map(lambda x: x[:, number], seen.local)
        state, scores = policy.decide(state, Round(number, local, before, observation, ()), key=jax.random.key(0))
        return state, rows.at[number].set(scores)

    zeros = jnp.zeros((episode.actions.shape[0], problem.agents, problem.actions + 1))
    return jax.lax.fori_loop(0, rounds, decide, (policy.start(), zeros))[1]


def executed(problem: Problem, chosen: Integer[Array, "*shape"]) -> Integer[Array, "*shape"]:
    """The action that the environment executes: STOP is replaced by an action whose observation is discarded."""
    return jnp.minimum(chosen, jnp.asarray(problem.actions - 1, chosen.dtype))


def world_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key of the world of an episode, from the key of the episode."""
    return _keys(key)[0]


def _keys(key: Key[Array, ""]) -> Key[Array, "3"]:
    """Keys of the world, of the first observation, and of the rounds (folded with their numbers)."""
    return jax.random.split(key, 3)


def action_type(problem: Problem) -> Any:
    """The smallest integer type that holds every action and STOP."""
    return jnp.int8 if problem.actions < 127 else jnp.int16


def _where(condition: Bool[Array, "worlds"], yes: Array, no: Array) -> Array:
    return jnp.where(condition.reshape(-1, *(1,) * (yes.ndim - 1)), yes, no)
