"""Exact Bayes for a source and a distractor on a grid, seen through a noisy, clipped field.

The belief is a table over pairs of cells and the distractor's intensity. Each round multiplies it by the likelihood of
a window. Cells with equal distances to all cells of the window form a class. The likelihood is computed for pairs of
classes only, a fifth of all pairs.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Bool, Float, Int, Int8, Int16

from icmape.problem.quadrature import gauss_jacobi

NODES, MOST_NODES = 16, 64
"""Of the quadrature over intensities: with σ = 0.07 a window around the distractor leaves them uncertain by 0.026."""
PER_NOISE = 1.6  # nodes for every σ in the range of intensities


class SourceBelief(NamedTuple):
    """Evidence of the field on pairs (up to a factor), and of the detectors on the source (in logs)."""

    pairs: Float[Array, "cells cells nodes"]  # distractor, source, intensity
    sources: Float[Array, "cells"]  # the same, summed over distractors and intensities
    detectors: Float[Array, "cells"]


class FieldReadings(NamedTuple):
    """One window of the field."""

    values: Float[Array, "m m"]
    inside: Bool[Array, "m m"]  # which of its cells exist
    position: Int8[Array, "2"]
    decay: Float[Array, ""]
    noise: Float[Array, ""]


class FieldModel(eqx.Module):
    """The prior over pairs and intensities, and the classes of cells for each position of the field agent.

    Args:
        grid: cells on a side.
        window: cells on a side of a window.
        move: cells that a move goes.
        start: where the field agent starts.
        distances: least and largest distance between source and distractor.
        intensity: of the distractor: low, high, and the two parameters of a Beta in between.
        noise: of a reading: the smaller, the finer must the quadrature be.
    """

    move: int = eqx.field(static=True)
    fine_enough: bool = eqx.field(static=True)  # whether there are enough nodes for the noise
    farthest: int = eqx.field(static=True)  # steps from any cell to any cell of a window
    apart: Bool[Array, "cells cells"]
    nodes: Float[Array, "nodes"]
    weights: Float[Array, "nodes"]
    alike: Int16[Array, "rows columns cells"]  # each cell's class, for each position of the agent
    steps: Int8[Array, "rows columns classes window"]  # from a class to each cell of the window

    def __init__(
        self,
        grid: int,
        window: int,
        move: int,
        start: tuple[int, int],
        distances: tuple[int, int],
        intensity: tuple[float, float, float, float],
        noise: float,
    ):
        self.move = move
        between = _distances(grid)
        self.apart = jnp.asarray((between >= distances[0]) & (between <= distances[1]))
        low, high, alpha, beta = intensity
        wanted = max(NODES, math.ceil(PER_NOISE * (high - low) / noise))
        self.fine_enough = wanted <= MOST_NODES
        nodes, weights = gauss_jacobi(min(wanted, MOST_NODES), alpha, beta)
        self.nodes = jnp.asarray(low + (high - low) * nodes, jnp.float32)
        self.weights = jnp.asarray(weights, jnp.float32)
        alike, steps = _classes(grid, window, move, start)
        self.alike, self.steps, self.farthest = jnp.asarray(alike), jnp.asarray(steps), int(steps.max())

    def prior(self) -> SourceBelief:
        """Uniform over pairs that are far enough apart."""
        apart = self.apart.astype(jnp.float32) / jnp.sum(self.apart.astype(jnp.float32))
        return SourceBelief(
            apart[:, :, None] * self.weights[None, None], jnp.sum(apart, axis=0), jnp.zeros(apart.shape[0])
        )

    def read(self, belief: SourceBelief, readings: FieldReadings) -> SourceBelief:
        """The belief after one more window."""
        row, column = (readings.position // self.move).astype(jnp.int32)
        alike = self.alike[row, column].astype(jnp.int32)
        factors = self.likelihood(readings)[:, alike] / jnp.sum(belief.sources)
        pairs = belief.pairs * factors[alike]
        return SourceBelief(pairs, jnp.sum(pairs, axis=(0, 2)), belief.detectors)

    def likelihood(self, readings: FieldReadings) -> Float[Array, "classes classes nodes"]:
        """p(window | class of the distractor, of the source, intensity), up to a factor: the largest is 1.

        A cell of the window shows the source if that is nearer, and the distractor otherwise. The likelihood of a
        distractor alone is corrected for the cells that are nearer to the source.
        """
        row, column = (readings.position // self.move).astype(jnp.int32)
        steps = self.steps[row, column].astype(jnp.int32)  # classes, window
        by_distance = self.by_distance(readings)
        by_class = jax.vmap(lambda logs, at: logs[at], in_axes=(0, 1))(by_distance, steps)  # window, classes, nodes + 1
        of_source, of_distractor = by_class[..., -1].T, jnp.swapaxes(by_class[..., :-1], 0, 1)

        def for_distractor(pair: tuple) -> Float[Array, "classes nodes"]:
            its_steps, says = pair
            nearer = (steps < its_steps[None]).astype(jnp.float32)
            return jnp.sum(nearer * of_source, axis=1)[:, None] + jnp.sum(says, axis=0)[None] - nearer @ says

        logs = jax.lax.map(for_distractor, (steps, of_distractor))
        return jnp.exp(logs - jnp.max(logs))

    def by_distance(self, readings: FieldReadings) -> Float[Array, "window distances shown"]:
        """log p of each reading, by distance to the distractor (for each intensity) or to the source."""
        levels = jnp.exp(-readings.decay * jnp.arange(self.farthest + 1.0))
        means = levels[:, None] * jnp.append(self.nodes, 1.0)[None]
        logs = clipped_log_density(readings.values.reshape(-1, 1, 1), means[None], readings.noise)
        return jnp.where(readings.inside.reshape(-1, 1, 1), logs, 0.0)


def clipped_log_density(
    value: Float[Array, "..."], mean: Float[Array, "..."], noise: Float[Array, ""]
) -> Float[Array, "..."]:
    """log p of a normal reading clipped to [0, 1]: a density inside, a probability at the ends."""
    inside = -0.5 * ((value - mean) / noise) ** 2 - jnp.log(noise) - 0.5 * math.log(2 * math.pi)
    low, high = log_ndtr(-mean / noise), log_ndtr((mean - 1.0) / noise)
    return jnp.where(value <= 0.0, low, jnp.where(value >= 1.0, high, inside))


def _distances(grid: int) -> Int[np.ndarray, "cells cells"]:
    rows, columns = np.divmod(np.arange(grid**2), grid)
    return np.abs(rows[:, None] - rows) + np.abs(columns[:, None] - columns)


@lru_cache(maxsize=16)
def _classes(grid: int, window: int, move: int, start: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """For every position that whole moves lead to: each cell's class, and each class's distances to the window."""
    rows, columns = np.divmod(np.arange(grid**2), grid)
    offsets = np.arange(window) - window // 2
    places = [np.arange(start[axis] % move, grid, move) for axis in (0, 1)]
    alike = np.zeros((len(places[0]), len(places[1]), grid**2), np.int16)
    tables: list[list[np.ndarray]] = []
    for i, row in enumerate(places[0]):
        tables.append([])
        for j, column in enumerate(places[1]):
            down = np.abs(rows[:, None] - (row + offsets))[:, :, None]
            across = np.abs(columns[:, None] - (column + offsets))[:, None, :]
            steps = (down + across).reshape(grid**2, -1)
            classes, alike[i, j] = np.unique(steps, axis=0, return_inverse=True)
            tables[-1].append(classes)
    largest = max(len(classes) for line in tables for classes in line)
    padded = [[np.pad(c, ((0, largest - len(c)), (0, 0)), mode="edge") for c in line] for line in tables]
    return alike, np.asarray(padded, np.int8)
