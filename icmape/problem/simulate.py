"""Simulated rounds of random actions, and what they say about the declared range of observations."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PyTree

from icmape.compiling import ONCE, compiled
from icmape.problem.contract import Problem
from icmape.problem.ranges import observation_layout, observation_parts

ROUNDS = 5  # of random actions
WORLDS = 16  # whose observations are compared with their range


def random_rounds(problem: Problem, key: Key[Array, ""]) -> tuple[Any, PyTree, Int[Array, "rounds agents"], PyTree]:
    """A world, its first observation, and a few rounds of random allowed actions with their observations."""
    rounds = min(ROUNDS, problem.horizon - 1)
    agents = jnp.arange(problem.agents)
    for_world, for_start, for_rounds = jax.random.split(key, 3)
    world = problem.sample(key=for_world)
    state, first = problem.start(world, key=for_start)

    def advance(carry: tuple, key: Key[Array, ""]) -> tuple[tuple, tuple]:
        state, memories = carry
        for_action, for_step = jax.random.split(key)
        allowed = jax.vmap(problem.action_mask)(memories)
        actions = jax.random.categorical(for_action, jnp.where(allowed, 0.0, -jnp.inf), axis=1)
        state, seen = problem.step(world, state, actions, key=for_step)
        memories = jax.vmap(problem.update_memory)(memories, agents, actions, seen)
        return (state, memories), (actions, seen)

    start = state, jax.vmap(problem.init_memory)(agents, first)
    _, (actions, seen) = jax.lax.scan(advance, start, jax.random.split(for_rounds, rounds))
    return world, first, actions, seen


def range_faults(problem: Problem) -> list[str]:
    """Observations of simulated rounds that are outside their declared range."""
    parts = observation_parts(problem.observation_range, observation_layout(problem))
    declares = type(problem.unwrapped).observation_range is not Problem.observation_range
    if not declares and not any(jnp.issubdtype(part.dtype, jnp.inexact) for part in parts):
        return []  # integers are always within the range of their type
    first, later = _simulated(problem, jax.random.split(jax.random.key(0), WORLDS))
    seen = [first, later] if problem.shows_first else [later]
    faults = []
    for part, *columns in zip(parts, *map(jax.tree.leaves, seen), strict=True):
        for column in columns:
            values = np.asarray(column.astype(jnp.float32) if jnp.issubdtype(part.dtype, jnp.inexact) else column)
            if not (inside := part.within(values)).all():
                faults.append(f"an observation is {values[~inside][0]}, outside its range ({part.in_words()})")
                break
    return faults


@compiled(ONCE)
def _simulated(problem: Problem, keys: Key[Array, "worlds"]) -> tuple[PyTree, PyTree]:
    """First and later observations of random rounds."""
    _, first, _, later = jax.vmap(lambda key: random_rounds(problem, key))(keys)
    return first, later
