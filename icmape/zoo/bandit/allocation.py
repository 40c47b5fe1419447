"""Optimal allocation of players to arms when the value of an arm depends on its own load only."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def allocate(worth: Float[Array, "arms loads"]) -> Int[Array, "arms"]:
    """Loads with the largest total worth that use every player; worth[k, l] is the worth of l players on arm k.

    Dynamic programming over arms (a knapsack): exact, in arms · players² steps instead of arms^players.
    """
    counts = jnp.arange(worth.shape[1])
    remaining = counts[:, None] - counts[None, :]  # players left for earlier arms, by total and load of this arm

    def add_arm(best: Float[Array, "loads"], arm_worth: Float[Array, "loads"]) -> tuple:
        total = jnp.where(remaining >= 0, best[jnp.maximum(remaining, 0)] + arm_worth[None, :], -jnp.inf)
        return jnp.max(total, axis=1), jnp.argmax(total, axis=1)

    def take(unassigned: Int[Array, ""], best_loads: Int[Array, "loads"]) -> tuple:
        return unassigned - best_loads[unassigned], best_loads[unassigned]

    nobody_yet = jnp.where(counts == 0, 0.0, -jnp.inf).astype(worth.dtype)
    choices: Int[Array, "arms loads"] = jax.lax.scan(add_arm, nobody_yet, worth)[1]
    return jax.lax.scan(take, counts[-1], choices, reverse=True)[1]


def actions_of(loads: Int[Array, "arms"], players: int) -> Int[Array, "players"]:
    """Arm of every player: lower-numbered players go to lower-numbered arms."""
    return jnp.sum(jnp.arange(players)[:, None] >= jnp.cumsum(loads)[None, :], axis=1)
