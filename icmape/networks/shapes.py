"""Shapes of the features of a problem, for building networks."""

from typing import Literal

import jax
import jax.numpy as jnp

from icmape.problem import Features, Problem


def view_shapes(problem: Problem, scope: Literal["agent", "team"]) -> Features:
    """The shapes of the features of an agent, or of the team."""

    def look() -> Features:
        key = jax.random.key(0)
        _, first = problem.start(problem.sample(key=key), key=key)
        memories = jax.vmap(problem.init_memory)(jnp.arange(problem.agents), first)
        if scope == "team":
            return problem.team_features(memories)
        return problem.features(jax.tree.map(lambda x: x[0], memories))

    return jax.eval_shape(look)
