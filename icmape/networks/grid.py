"""Encoders of histories with maps: a convolution over the map next to the recurrent encoder.

The first convolution has the size and the stride of a tile (`Problem.patch`), so that the map of every prefix of a
history can be read cheaply; 3×3 layers would cost many times more.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from icmape.networks.encoder import Encoder, TokenEncoder
from icmape.problem import Features

TILE = 32  # features of a tile


class MapEncoder(eqx.Module):
    """A linear layer per tile of the map, then one over all tiles."""

    tiles: eqx.nn.Linear
    whole: eqx.nn.Linear
    patch: int = eqx.field(static=True)

    def __init__(self, shape: tuple[int, int, int], patch: int, width: int, *, key: Key[Array, ""]):
        for_tiles, for_whole = jax.random.split(key)
        channels, rows, columns = shape
        self.patch = patch
        count = -(-rows // patch) * -(-columns // patch)
        self.tiles = eqx.nn.Linear(channels * patch**2, TILE, key=for_tiles)
        self.whole = eqx.nn.Linear(count * TILE, width, key=for_whole)

    def __call__(self, grid: Float[Array, "channels rows columns"]) -> Float[Array, "width"]:
        """Features of a map."""
        features = jax.nn.gelu(jax.vmap(self.tiles)(cut_tiles(grid, self.patch)))
        return jax.nn.gelu(self.whole(features.reshape(-1)))


def cut_tiles(grid: Float[Array, "channels rows columns"], patch: int) -> Float[Array, "tiles values"]:
    """The tiles of a map, row by row, padded with 0 at the far edges."""
    channels, rows, columns = grid.shape
    grid = jnp.pad(grid, ((0, 0), (0, -rows % patch), (0, -columns % patch)))
    across, down = grid.shape[2] // patch, grid.shape[1] // patch
    split = grid.reshape(channels, down, patch, across, patch)
    return jnp.transpose(split, (1, 3, 0, 2, 4)).reshape(down * across, channels * patch**2)


class GridEncoder(Encoder):
    """Fuses the features of the map with the summary of the tokens (linear, GELU)."""

    history: TokenEncoder
    maps: MapEncoder
    fusion: eqx.nn.Linear

    def __init__(
        self,
        make_tokens: Callable[..., TokenEncoder],
        features: int,
        grid: tuple[int, int, int],
        patch: int,
        width: int,
        kind: str,
        *,
        key: Key[Array, ""],
    ):
        keys = jax.random.split(key, 3)
        self.history = make_tokens(features, width, kind, key=keys[0])
        self.maps = MapEncoder(grid, patch, width, key=keys[1])
        self.fusion = eqx.nn.Linear(self.history.size + width, width, key=keys[2])

    @property  # type: ignore[misc]
    def kind(self) -> str:  # type: ignore[override]
        """Kind of the recurrent encoder."""
        return self.history.kind

    @property
    def width(self) -> int:
        """Width of the recurrent encoder."""
        return self.history.width

    @property
    def size(self) -> int:
        """Size of a summary."""
        return self.width

    def start(self) -> PyTree:
        """The state before the first round."""
        return self.history.start()

    def step(self, state: PyTree, view: Features) -> tuple[PyTree, Float[Array, "summary"]]:
        """The summary after one more round."""
        state, summary = self.history.step(state, view)
        return state, self._fuse(summary, self._map(view))

    def unroll(self, views: Features) -> Float[Array, "rounds summary"]:
        """The summaries of all prefixes of a history."""
        return jax.vmap(self._fuse)(self.history.unroll(views), jax.vmap(self._map)(views))

    def _map(self, view: Features) -> Float[Array, "width"]:
        assert view.grid is not None  # this encoder is built only for problems with a grid
        return self.maps(view.grid)

    def _fuse(self, summary: Float[Array, "history"], features: Float[Array, "width"]) -> Float[Array, "summary"]:
        return jax.nn.gelu(self.fusion(jnp.concatenate([summary, features])))
