"""What networks are built from: the shapes of a problem's views."""

from typing import Literal

import jax
import jax.numpy as jnp

from icmape.problem import Features, Problem


def view_shapes(problem: Problem, of: Literal["agent", "team"]) -> Features:
    """The shapes of an agent's view, or of the team's."""

    def look() -> Features:
        key = jax.random.key(0)
        _, first = problem.start(problem.sample(key=key), key=key)
        memories = jax.vmap(problem.init_memory)(jnp.arange(problem.agents), first)
        return (
            problem.team_features(memories)
            if of == "team"
            else problem.features(jax.tree.map(lambda x: x[0], memories))
        )

    return jax.eval_shape(look)
