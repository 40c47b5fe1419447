"""Inference on fixed ground: a cell is the same place in every world, so that weights can depend on the cell."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from icmape.networks.inference_networks import MapReader, WithinCells, map_of
from icmape.problem import Problem

PLACE = 8  # features of a place


class GroundInference(MapReader):
    """A network that reads the map in the cells of the hypotheses only."""

    cells: eqx.AbstractVar[tuple[int, ...]]
    size: eqx.AbstractVar[int]

    @abstractmethod
    def scores(self, shown: Float[Array, "cells channels"]) -> Float[Array, "cells"]:
        """A score for every cell."""

    @property
    def width(self) -> int:
        """Width of the layers, as in the settings."""
        return self.size

    def read(self, grid: Float[Array, "channels rows columns"]) -> Float[Array, "cells"]:
        """Scores from the map in the cells of the hypotheses."""
        return self.scores(grid.reshape(grid.shape[0], -1)[:, np.asarray(self.cells)].T)


class DenseInference(GroundInference):
    """Two dense layers of four times the width over all cells; on a CPU a tenth of the time of `PairwiseInference`."""

    first: eqx.nn.Linear
    second: eqx.nn.Linear
    last: eqx.nn.Linear
    direct: eqx.nn.Linear
    cells: tuple[int, ...] = eqx.field(static=True)
    size: int = eqx.field(static=True)
    kind: ClassVar[str] = "dense"

    def __init__(self, problem: Problem, width: int, *, key: Key[Array, ""]):
        keys = jax.random.split(key, 4)
        (inputs, _, _), self.cells = map_of(problem)
        self.size, count, hidden = width, len(self.cells), 4 * width
        self.first = eqx.nn.Linear(count * inputs, hidden, key=keys[0])
        self.second = eqx.nn.Linear(hidden, hidden, key=keys[1])
        self.last = eqx.nn.Linear(hidden, count, key=keys[2])
        self.direct = eqx.nn.Linear(count * inputs, count, key=keys[3])

    def scores(self, shown: Float[Array, "cells channels"]) -> Float[Array, "cells"]:
        """A score for every cell."""
        flat = shown.reshape(-1)
        seen = jax.nn.gelu(self.first(flat))
        seen = seen + jax.nn.gelu(self.second(seen))
        return self.last(seen) + self.direct(flat)


class PairwiseInference(GroundInference):
    """Every cell receives messages from all other cells, with separate weights for each pair.

    As in a Gaussian process, a reading in one cell changes the scores of the others. A summary of all cells encodes
    properties of the whole world (for example the year). Each cell also has learned features.
    """

    places: Float[Array, "cells place"]
    look: WithinCells
    first: Float[Array, "channels cells cells"]
    whole: eqx.nn.Linear
    kind_of_world: eqx.nn.Linear
    to_answer: eqx.nn.Linear
    weigh: WithinCells
    second: Float[Array, "channels cells cells"]
    conclude: WithinCells
    start_at: Float[Array, "cells"]
    cells: tuple[int, ...] = eqx.field(static=True)
    size: int = eqx.field(static=True)
    kind: ClassVar[str] = "pairwise"

    def __init__(self, problem: Problem, width: int, *, key: Key[Array, ""]):
        keys = jax.random.split(key, 9)
        (inputs, _, _), self.cells = map_of(problem)
        self.size, count = width, len(self.cells)
        channels, hidden = max(8, width // 8), max(16, width // 2)
        mixing = (channels, count, count)
        self.places = 0.1 * jax.random.normal(keys[0], (count, PLACE))
        self.look = WithinCells(inputs + PLACE, hidden, channels, key=keys[1])
        self.first = count**-0.5 * jax.random.normal(keys[2], mixing)
        self.whole = eqx.nn.Linear(count * channels, width, key=keys[3])
        self.kind_of_world = eqx.nn.Linear(width, hidden, key=keys[7])
        self.to_answer = eqx.nn.Linear(width, hidden, key=keys[8])
        self.weigh = WithinCells(inputs + PLACE + 2 * channels, hidden, channels, key=keys[4])
        self.second = count**-0.5 * jax.random.normal(keys[5], mixing)
        self.conclude = WithinCells(inputs + PLACE + 3 * channels, hidden, 1, key=keys[6])
        self.start_at = jnp.zeros(count)

    def scores(self, shown: Float[Array, "cells channels"]) -> Float[Array, "cells"]:
        """A score for every cell."""
        seen = self.look(shown, self.places)
        heard = jnp.einsum("cij,jc->ic", self.first, seen)
        summary = jax.nn.gelu(self.whole(seen.reshape(-1)))
        weighed = self.weigh(shown, self.places, seen, heard, shared=self.kind_of_world(summary))
        answered = jnp.einsum("cij,jc->ic", self.second, weighed)
        outputs = self.conclude(shown, self.places, heard, weighed, answered, shared=self.to_answer(summary))
        return self.start_at + outputs[:, 0]
