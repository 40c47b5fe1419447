"""Concentration fields: Gaussian processes on log(1 + concentration), fitted to subsets of a year's readings."""

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key

from icmape.zoo.hotspot.history import History


class Field(NamedTuple):
    """Posterior of the field in every valid cell, in log(1 + concentration)."""

    mean: Float[Array, "cells"]
    deviation: Float[Array, "cells"]


class FieldModel(eqx.Module):
    """Draws fields. Covariances between stations, and between stations and cells, are computed once."""

    history: History
    between: Float[Array, "stations stations"]
    towards: Float[Array, "stations cells"]
    variance: Float[Array, ""]
    noise: Float[Array, ""]

    def __init__(self, history: History, cells: Float[Array, "cells 2"], length: float, variance: float, noise: float):
        use_one_blas_thread()
        self.history = history
        self.between = covariance(history.places, history.places, length, variance)
        self.towards = covariance(history.places, cells, length, variance)
        self.variance, self.noise = jnp.float32(variance), jnp.float32(noise)

    def draw(self, year: Integer[Array, ""], size: int, *, key: Key[Array, ""]) -> Field:
        """The field fitted to a random subset of a year's readings."""
        return self.fit(*self.history.subset(year, size, key=key))

    def fit(self, stations: Integer[Array, "readings"], values: Float[Array, "readings"]) -> Field:
        """The field fitted to these readings."""
        between = self.between[stations[:, None], stations[None, :]]
        return condition(between, self.towards[stations], self.variance, self.noise, values)


@cache
def use_one_blas_thread() -> None:
    """Limit BLAS to one thread, which is faster for many small factorisations."""
    with suppress(ImportError):
        from threadpoolctl import threadpool_limits

        threadpool_limits(limits=1, user_api="blas")


def _one_by_one_on_cpus(function: Callable[..., Field]) -> Callable[..., Field]:
    """On a CPU, run one by one instead of in batches, which is equally fast.

    Two simultaneous batches of factorisations can deadlock there (jaxlib 0.10).
    """
    in_turn = jax.custom_batching.sequential_vmap(function)

    @wraps(function)
    def chosen(*arguments: Array) -> Field:
        return jax.lax.platform_dependent(*arguments, cpu=in_turn, default=function)

    return chosen


@_one_by_one_on_cpus
def condition(
    between: Float[Array, "readings readings"],
    towards: Float[Array, "readings cells"],
    variance: Float[Array, ""],
    noise: Float[Array, ""],
    values: Float[Array, "readings"],
) -> Field:
    """Posterior mean and deviation of the field in cells, around the mean of the readings.

    Args:
        between: covariance between the places of the readings.
        towards: covariance between these and the cells.
        variance: of the field, anywhere.
        noise: variance of a reading around the field.
        values: the readings.
    """
    root = jnp.linalg.cholesky(between + noise * jnp.eye(between.shape[0]))
    centre = jnp.mean(values)
    right_sides = jnp.concatenate([towards, (values - centre)[:, None]], axis=1)
    whitened = jax.scipy.linalg.solve_triangular(root, right_sides, lower=True)
    towards, residual = whitened[:, :-1], whitened[:, -1]
    remaining = variance - jnp.sum(towards**2, axis=0)
    return Field(centre + residual @ towards, jnp.sqrt(jnp.maximum(remaining, 0.0)))


def covariance(a: Float[Array, "n 2"], b: Float[Array, "m 2"], length: float, variance: float) -> Float[Array, "n m"]:
    """Matérn-3/2."""

    def between(x: Float[Array, "2"], y: Float[Array, "2"]) -> Float[Array, ""]:
        arg = math.sqrt(3) * jnp.sqrt(jnp.sum(jnp.square(x - y))) / length
        return (1 + arg) * jnp.exp(-arg)

    return variance * jax.vmap(lambda x: jax.vmap(lambda y: between(x, y))(b))(a)
