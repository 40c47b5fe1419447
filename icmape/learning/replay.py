"""A ring buffer of whole episodes in storage types."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key

from icmape.play.devices import share
from icmape.play.rollout import Episode


class Replay(NamedTuple):
    """The last `capacity` episodes; the first `size` rows are filled."""

    episodes: Episode
    position: Int[Array, ""]
    size: Int[Array, ""]


def empty(like: Episode, capacity: int) -> Replay:
    """An empty buffer for episodes of this layout (arrays or their shapes, with a leading axis of worlds)."""
    rows = jax.tree.map(lambda x: jnp.zeros((capacity, *x.shape[1:]), x.dtype), like)
    return Replay(rows, jnp.int32(0), jnp.int32(0))


def push(replay: Replay, new: Episode) -> Replay:
    """Store episodes over the oldest ones."""
    capacity, count = replay.episodes.stop.shape[0], new.stop.shape[0]
    rows = (replay.position + jnp.arange(count)) % capacity
    return Replay(
        jax.tree.map(lambda stored, added: stored.at[rows].set(added), replay.episodes, new),
        (replay.position + count) % capacity,
        jnp.minimum(replay.size + count, capacity),
    )


def draw(replay: Replay, count: int, *, key: Key[Array, ""]) -> Episode:
    """Episodes at random, with replacement."""
    rows = jax.random.randint(key, (count,), 0, jnp.maximum(replay.size, 1))
    return share(jax.tree.map(lambda stored: stored[rows], replay.episodes))
