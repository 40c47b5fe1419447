"""The dual variable ζ: the cost of a round, in units of probability."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from icmape.learning.config import Dual

NEAR = 0.02  # distance to the target that counts as reached; larger errors are clipped to it


class Price(NamedTuple):
    """The dual variable, and whether the team has ever been near its target."""

    step_cost: Float[Array, ""]  # ζ
    reached: Bool[Array, ""]


def start_price(dual: Dual, length: Float[Array, ""]) -> Price:
    """The initial dual variable: as set, or 0.25 divided by the length of an episode."""
    price = 0.25 / length if dual.init is None else jnp.asarray(dual.init, jnp.float32)
    return Price(jnp.minimum(price, dual.max), jnp.zeros((), bool))


def update_price(
    price: Price, measured: Float[Array, ""], delta: float, dual: Dual, progress: Float[Array, ""]
) -> Price:
    """ζ rises while accuracy exceeds the target and falls below it.

    The multiplicative rule is ζ · exp(η · error). It starts when accuracy has come near the target or most of training
    is over: before that, low accuracy means that the team has yet to learn, not that rounds cost too much. The additive
    rule is the paper's ζ + η · error.
    """
    error = measured - jnp.minimum(1.0 - delta + dual.margin, 1.0)
    if dual.rule == "additive":
        return price._replace(step_cost=jnp.clip(price.step_cost + dual.lr * error, 0.0, dual.max))
    reached = price.reached | (error > -NEAR) | (progress > 0.6)
    moved = price.step_cost * jnp.exp(dual.lr * jnp.clip(error, -NEAR, NEAR))
    return Price(jnp.where(reached, jnp.minimum(moved, dual.max), price.step_cost), reached)
