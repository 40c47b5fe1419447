"""Playing with a running memory, against reading the whole history again in every round.

Both are one compiled program over all worlds and rounds, and read a token with the same `Actors.step`. Of the ways to
read a history again this was the fastest: `unroll` over the prefix, compiled once for every length, took twice as long.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.timing import Measurement, alternate, assert_same, median_ratio
from icmape.learning.presets import preset
from icmape.networks import Actors
from icmape.problem import Features, Problem

WORLDS = 64


def measure(quick: bool = False) -> Measurement:
    """How many times faster the running memory plays T rounds."""
    repeats = 3 if quick else 7
    a3p5 = preset("bandit-a3p5")
    problem, network = a3p5.build(), a3p5.config("td3").network
    actors = Actors(
        problem, network.hidden_size, network.encoder, network.stop_bias, network.share_weights, key=jax.random.key(0)
    )
    keys = jax.random.split(jax.random.key(1), WORLDS)
    ways = {
        "running memory": _player(problem, actors, keys, start_states, update_memory),
        "reading again": _player(problem, actors, keys, start_history, read_again),
    }
    difference = assert_same("acting", *(way() for way in ways.values()), tolerance=1e-4)
    samples = alternate(ways, repeats)
    sizes = {"worlds": WORLDS, "rounds": problem.horizon, "agents": problem.agents, "width": network.hidden_size}
    return Measurement(median_ratio(samples), sizes, samples, repeats, {"largest_relative_difference": difference})


def _player(problem: Problem, actors: Actors, keys: jax.Array, start: Callable, decide: Callable) -> Callable:
    games = jax.jit(jax.vmap(partial(play, problem, start, decide), in_axes=(None, 0)))
    return lambda: games(actors, keys)


def play(problem: Problem, start: Callable, decide: Callable, actors: Actors, key: jax.Array) -> jax.Array:
    """The scores of every round of one game in which nobody stops."""
    agents = jnp.arange(problem.agents)
    world = problem.sample(key=key)
    state, observation = problem.start(world, key=key)
    memories = jax.vmap(problem.init_memory)(agents, observation)

    def one_round(carry: tuple, number: jax.Array) -> tuple:
        state, memories, mind = carry
        mind, scores = decide(actors, mind, jax.vmap(problem.features)(memories), number)
        arms = jnp.argmax(scores[:, :-1], axis=1)
        state, observation = problem.step(world, state, arms, key=jax.random.fold_in(key, number))
        memories = jax.vmap(problem.update_memory)(memories, agents, arms, observation)
        return (state, memories, mind), scores

    mind = start(problem, actors, jax.vmap(problem.features)(memories))
    return jax.lax.scan(one_round, (state, memories, mind), jnp.arange(problem.horizon))[1]


def start_states(problem: Problem, actors: Actors, views: Features) -> Any:
    """What the encoders carry before the first token."""
    start = actors.pick(jnp.int32(0)).start()
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (problem.agents, *x.shape)), start)


def update_memory(actors: Actors, states: Any, views: Features, number: jax.Array) -> tuple[Any, jax.Array]:
    """One token more: as much work in every round."""
    return actors.step(states, views, number)


def start_history(problem: Problem, actors: Actors, views: Features) -> Any:
    """Room for every round's views, and the states that reading starts from."""
    room = jax.tree.map(lambda x: jnp.zeros((problem.horizon, *x.shape), x.dtype), views)
    return room, start_states(problem, actors, views)


def read_again(actors: Actors, history: Any, views: Features, number: jax.Array) -> tuple[Any, jax.Array]:
    """All tokens so far: round t costs t times as much. The loop ends at t, so no padding is read."""
    room, start = history
    room = jax.tree.map(lambda stored, new: stored.at[number].set(new), room, views)

    def read(t: jax.Array, states: Any) -> Any:
        return actors.step(states, jax.tree.map(lambda x: x[t], room), t)[0]

    states = jax.lax.fori_loop(0, number, read, start)
    return (room, start), actors.step(states, views, number)[1]
