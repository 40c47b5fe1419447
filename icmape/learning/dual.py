"""The dual variable ζ: what a round costs, in units of probability."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from icmape.learning.config import Dual


def update_step_cost(
    step_cost: Float[Array, ""], measured: Float[Array, ""], delta: float, dual: Dual
) -> Float[Array, ""]:
    """ζ ← clip(ζ + η (measured - target), 0, limit): dearer while the team is surer than it needs to be."""
    target = min(1.0 - delta + dual.margin, 1.0)
    return jnp.clip(step_cost + dual.rate * (measured - target), 0.0, dual.limit)
