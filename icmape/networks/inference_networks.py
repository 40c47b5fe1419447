"""Inference networks: scores over the hypotheses from the history of the team.

Besides the recurrent network there are two for hypotheses that are cells of a map. The paper's is fully convolutional,
with a receptive field of 5×5 cells. `CorrelatingInference` lets every cell depend on the readings of all cells.
"""

from abc import abstractmethod
from math import prod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree

from icmape.errors import UserError
from icmape.networks.encoder import Encoder
from icmape.networks.encoders import make_encoder
from icmape.networks.shapes import view_shapes
from icmape.problem import Features, Problem


class InferenceNetwork(eqx.Module):
    """Interface of inference networks."""

    kind: ClassVar[str]
    reads_history: ClassVar[bool] = False  # whether it reads more than the last round

    @property
    @abstractmethod
    def width(self) -> int:
        """Width of the layers."""

    @abstractmethod
    def start(self) -> PyTree:
        """The state before the first round."""

    @abstractmethod
    def step(self, state: PyTree, view: Features) -> tuple[PyTree, Float[Array, "..."]]:
        """Scores after one more round."""

    @abstractmethod
    def unroll(self, views: Features) -> Float[Array, "rounds ..."]:
        """Scores at every round."""


class Inference(InferenceNetwork):
    """An encoder of the history of the team, and a linear layer."""

    encoder: Encoder
    head: eqx.nn.Linear
    shape: tuple[int, ...] = eqx.field(static=True)
    kind: ClassVar[str] = "recurrent"
    reads_history: ClassVar[bool] = True

    def __init__(self, problem: Problem, width: int, kind: str, *, key: Key[Array, ""]):
        for_encoder, for_head = jax.random.split(key)
        self.shape = problem.hypotheses.shape
        self.encoder = make_encoder(
            view_shapes(problem, "team"), problem.patch, width, kind, problem.horizon, key=for_encoder
        )
        self.head = eqx.nn.Linear(self.encoder.size, prod(self.shape), key=for_head)

    @property
    def width(self) -> int:
        """Width of the encoder."""
        return self.encoder.width

    def start(self) -> PyTree:
        """The state before the first round."""
        return self.encoder.start()

    def step(self, state: PyTree, view: Features) -> tuple[PyTree, Float[Array, "..."]]:
        """Scores after one more round."""
        state, summary = self.encoder.step(state, view)
        return state, self.head(summary).reshape(self.shape)

    def unroll(self, views: Features) -> Float[Array, "rounds ..."]:
        """Scores at every round."""
        scores = jax.vmap(self.head)(self.encoder.unroll(views))
        return scores.reshape((-1, *self.shape))


class MapReader(InferenceNetwork):
    """A network that reads only the map of the last round."""

    @abstractmethod
    def read(self, grid: Float[Array, "channels rows columns"]) -> Float[Array, "hypotheses"]:
        """Scores from a map."""

    def start(self) -> tuple:
        """No state."""
        return ()

    def step(self, state: tuple, view: Features) -> tuple[tuple, Float[Array, "hypotheses"]]:
        """Scores from the map of this round."""
        assert view.grid is not None  # checked at construction
        return state, self.read(view.grid)

    def unroll(self, views: Features) -> Float[Array, "rounds hypotheses"]:
        """Scores at every round."""
        return jax.vmap(lambda view: self.step((), view)[1])(views)


class MapInference(MapReader):
    """A network that scores every cell of the map and selects the cells of the hypotheses."""

    cells: tuple[int, ...] = eqx.field(static=True)

    @abstractmethod
    def scores(self, grid: Float[Array, "channels rows columns"]) -> Float[Array, "rows columns"]:
        """A score for every cell."""

    def read(self, grid: Float[Array, "channels rows columns"]) -> Float[Array, "hypotheses"]:
        """The scores of the hypotheses' cells."""
        scores = self.scores(grid).reshape(-1)
        if self.cells == tuple(range(scores.shape[0])):  # all cells: no indexing, whose gradient is a slow scatter
            return scores
        return scores[np.asarray(self.cells)]


class ConvolutionalInference(MapInference):
    """The network of the paper for source localization: two 3×3 layers and one 1×1 layer."""

    first: eqx.nn.Conv2d
    second: eqx.nn.Conv2d
    last: eqx.nn.Conv2d
    kind: ClassVar[str] = "convolutional"

    def __init__(self, problem: Problem, width: int, *, key: Key[Array, ""]):
        keys = jax.random.split(key, 3)
        shape, self.cells = map_of(problem)
        self.first = eqx.nn.Conv2d(shape[0], width, 3, padding=1, key=keys[0])
        self.second = eqx.nn.Conv2d(width, width, 3, padding=1, key=keys[1])
        self.last = eqx.nn.Conv2d(width, 1, 1, key=keys[2])

    @property
    def width(self) -> int:
        """Channels of the hidden layers."""
        return self.first.out_channels

    def scores(self, grid: Float[Array, "channels rows columns"]) -> Float[Array, "rows columns"]:
        """A score for every cell, from the 5×5 cells around it."""
        return self.last(jax.nn.relu(self.second(jax.nn.relu(self.first(grid)))))[0]


class WithinCells(eqx.Module):
    """The same small network in every cell."""

    first: eqx.nn.Linear
    second: eqx.nn.Linear

    def __init__(self, inputs: int, width: int, outputs: int, *, key: Key[Array, ""]):
        for_first, for_second = jax.random.split(key)
        self.first = eqx.nn.Linear(inputs, width, key=for_first)
        self.second = eqx.nn.Linear(width, outputs, key=for_second)

    def __call__(
        self, *maps: Float[Array, "cells _"], shared: Float[Array, "width"] | float = 0.0
    ) -> Float[Array, "cells outputs"]:
        """Outputs of every cell, from its values in the maps and a hidden offset shared by all cells."""
        return jax.vmap(lambda x: self.second(jax.nn.relu(self.first(x) + shared)))(jnp.concatenate(maps, axis=1))


class CorrelatingInference(MapInference):
    """Every cell receives messages from all other cells, with weights that depend on their displacement.

    Features of each cell are correlated with kernels twice as large as the map: a reading votes for the places that
    would explain it, as in a Hough transform, and sums of votes can represent log-likelihoods. A second layer of this
    kind lets places compete, such as those of a source and a distractor.
    """

    look: WithinCells
    votes: Float[Array, "channels down across"]
    weigh: WithinCells
    answers: Float[Array, "channels down across"]
    conclude: WithinCells
    size: int = eqx.field(static=True)
    kind: ClassVar[str] = "correlating"

    def __init__(self, problem: Problem, width: int, *, key: Key[Array, ""]):
        keys = jax.random.split(key, 5)
        (inputs, rows, columns), self.cells = map_of(problem)
        self.size = width
        channels, hidden, scale = max(8, width // 8), max(16, width // 2), (rows * columns) ** -0.5
        reach = (channels, 2 * rows - 1, 2 * columns - 1)
        self.look = WithinCells(inputs, hidden, channels, key=keys[0])
        self.votes = scale * jax.random.normal(keys[1], reach)
        self.weigh = WithinCells(inputs + 2 * channels, hidden, channels, key=keys[2])
        self.answers = scale * jax.random.normal(keys[3], reach)
        self.conclude = WithinCells(inputs + 3 * channels, hidden, 1, key=keys[4])

    @property
    def width(self) -> int:
        """Twice the width of the layers within a cell."""
        return self.size

    def scores(self, grid: Float[Array, "channels rows columns"]) -> Float[Array, "rows columns"]:
        """A score for every cell, from the whole map."""
        shape = grid.shape[1], grid.shape[2]
        shown = grid.reshape(grid.shape[0], -1).T
        seen = self.look(shown)
        heard = correlate(self.votes, seen, shape)
        weighed = self.weigh(shown, seen, heard)
        answered = correlate(self.answers, weighed, shape)
        return self.conclude(shown, heard, weighed, answered).reshape(shape)


def correlate(
    kernels: Float[Array, "channels down across"], maps: Float[Array, "cells channels"], shape: tuple[int, int]
) -> Float[Array, "cells channels"]:
    """Correlate each channel with its kernel, as one product with a matrix of all pairs of cells."""
    between = kernels.reshape(kernels.shape[0], -1)[:, _offsets(*shape)]
    return jnp.einsum("cij,jc->ic", between, maps)


def _offsets(rows: int, columns: int) -> Int[np.ndarray, "cells cells"]:
    """The index into a kernel for each pair of cells."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    down = row[:, None] - row[None, :] + rows - 1
    across = column[:, None] - column[None, :] + columns - 1
    return down * (2 * columns - 1) + across


def map_of(problem: Problem) -> tuple[tuple[int, int, int], tuple[int, ...]]:
    """The shape of the team's map, and the cells of the hypotheses."""
    grid, cells = view_shapes(problem, "team").grid, problem.cells
    if grid is None or cells is None:
        raise UserError(
            f"hypotheses of {type(problem).__name__} are not cells of a map: network.inference must be recurrent, as "
            "the default is here"
        )
    channels, rows, columns = grid.shape
    return (channels, rows, columns), tuple(int(cell) for cell in cells)
