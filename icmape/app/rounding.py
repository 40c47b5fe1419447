"""Weights in 8 bits, so that several teams fit into one small file.

Each row of a large matrix becomes whole numbers from -127 to 127 and one scale. A rounded team is a team like others:
what is said of an app is computed with the rounded weights, in Python and in the browser alike.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float32, Int8

from icmape.play.team import Team
from icmape.play.team_files import team_tensors

SMALL = 4096  # weights of a matrix that keeps its precision
LARGEST = 127


class Rows(NamedTuple):
    """A matrix in 8 bits. Entries are numbers times the scale of their row."""

    numbers: Int8[np.ndarray, "rows columns"]
    scales: Float32[np.ndarray, "rows"]

    @property
    def values(self) -> Float32[np.ndarray, "rows columns"]:
        """The matrix."""
        return self.numbers.astype(np.float32) * self.scales[:, None]


def in_rows(matrix: Float[np.ndarray, "*axes columns"]) -> Rows:
    """The nearest matrix of this kind."""
    rows = np.asarray(matrix, np.float32).reshape(-1, matrix.shape[-1])
    scales = np.max(np.abs(rows), axis=1) / np.float32(LARGEST)
    numbers = np.rint(rows / np.where(scales > 0, scales, 1)[:, None])
    return Rows(numbers.astype(np.int8), scales.astype(np.float32))


def rounded(team: Team) -> tuple[Team, dict[str, Rows]]:
    """The team with its large matrices in 8 bits, and these by their names in its file."""
    named = team_tensors(team)
    packed = {name: in_rows(np.asarray(leaf)) for name, leaf in named.items() if _is_large(leaf)}
    by_leaf = {id(named[name]): jnp.asarray(rows.values.reshape(named[name].shape)) for name, rows in packed.items()}
    replaced = jax.tree.map(lambda leaf: by_leaf.get(id(leaf), leaf), team, is_leaf=eqx.is_array)
    return replaced, packed


def _is_large(leaf: Any) -> bool:
    return bool(eqx.is_array(leaf) and leaf.dtype == jnp.float32 and leaf.ndim > 1 and leaf.size > SMALL)
