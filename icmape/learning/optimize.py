"""Optimizer, learning rate schedule, gradient steps and Polyak averages."""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from icmape.learning.algorithms import Scalar
from icmape.learning.config import Config

Optimizer: TypeAlias = optax.GradientTransformation


def adam(clip: float) -> Optimizer:
    """Adam after clipping the norm of the gradient; the learning rate is applied in `descend`.

    Parameters are flattened: one vector instead of dozens of leaves compiles and runs as one kernel.
    """
    return optax.flatten(optax.chain(optax.clip_by_global_norm(clip), optax.scale_by_adam()))


def progress_at(config: Config, iteration: Int[Array, ""]) -> Float[Array, ""]:
    """The fraction of training that is done, from 0 to 1."""
    return iteration.astype(jnp.float32) / jnp.asarray(config.iterations, jnp.float32)


def step_size(config: Config, iteration: Int[Array, ""]) -> Float[Array, ""]:
    """Factor of the learning rates at this point of training."""
    return 1.0 + (config.final_lr_fraction - 1.0) * progress_at(config, iteration)


def descend(
    optimizer: Optimizer,
    loss_of: Callable[[Any], Float[Array, ""]],
    parameters: Any,
    moments: PyTree,
    rate: Float[Array, ""],
) -> tuple[Any, PyTree, Float[Array, ""]]:
    """One gradient step: new parameters, new moments, and the loss before the step."""
    loss, gradient = jax.value_and_grad(loss_of)(parameters)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # optax needs both
        direction, moments = optimizer.update(gradient, moments)
    return jax.tree.map(lambda p, d: p - rate * d, parameters, direction), moments, loss


def follow(slow: Any, fast: Any, rate: Scalar) -> Any:
    """Polyak averaging: move the slow copy towards the fast one."""
    return jax.tree.map(lambda s, f: s + rate * (f - s), slow, fast)
