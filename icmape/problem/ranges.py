"""The values that a reading may have, as a problem declares them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from icmape.errors import UserError
from icmape_agent.ranges import BIT, Part, Range

__all__ = ["BIT", "Part", "Range", "observation_layout", "observation_parts"]


def observation_parts(declared: PyTree, layout: PyTree) -> list[Part]:
    """The arrays of a joint observation with their ranges: `declared` is one range for all, or a tree of ranges."""
    named = jax.tree_util.tree_flatten_with_path(layout)[0]
    ranges = [declared] * len(named) if isinstance(declared, Range) else jax.tree.leaves(declared)
    if not isinstance(declared, Range) and not same_structure(declared, layout):
        raise UserError("observation_range must be an icmape.Range, or one for each part in the observation's layout")
    if odd := [item for item in ranges if not isinstance(item, Range)]:
        raise UserError(f"observation_range must be made of icmape.Range; it holds {odd[0]!r}")
    keystr = jax.tree_util.keystr
    return [
        Part(keystr(path, simple=True, separator="."), leaf.shape[1:], np.dtype(leaf.dtype), _stored(item, leaf))
        for (path, leaf), item in zip(named, ranges, strict=True)
    ]


def _stored(declared: Range, leaf: Any) -> Range:
    """A range in the shape of the joint observation, within what the type stores and rounded as it rounds."""
    try:
        low, high, whole = (np.broadcast_to(x, leaf.shape) for x in (declared.low, declared.high, declared.whole))
    except ValueError as error:
        raise UserError(f"a range must broadcast to the joint observation of shape {leaf.shape}: {error}") from error
    if leaf.dtype == bool:
        return Range(np.zeros(leaf.shape, np.int8), np.ones(leaf.shape, np.int8), np.ones(leaf.shape, bool))
    if jnp.issubdtype(leaf.dtype, jnp.integer):
        kind = jnp.iinfo(leaf.dtype)
        low, high = np.ceil(np.maximum(low, float(kind.min))), np.floor(np.minimum(high, float(kind.max)))
        wide = np.int64 if kind.bits < 64 else np.float64  # whole numbers up to 64 bits
        return Range(low.astype(wide), high.astype(wide), np.ones(leaf.shape, bool))
    least, largest = float(jnp.finfo(leaf.dtype).min), float(jnp.finfo(leaf.dtype).max)
    low, high = np.maximum(low, least).astype(np.float64), np.minimum(high, largest).astype(np.float64)
    rounded = (np.asarray(jnp.asarray(x, leaf.dtype), np.float64) for x in (low, high))
    return Range(np.minimum(low, next(rounded)), np.maximum(high, next(rounded)), whole)


def same_structure(one: PyTree, other: PyTree) -> bool:
    """Whether two trees differ in their leaves only."""
    structures: list[Any] = [jax.tree.structure(tree) for tree in (one, other)]
    return bool(structures[0] == structures[1])


def observation_layout(problem: Any) -> PyTree:
    """Shapes and types of a joint observation."""

    def look() -> PyTree:
        key = jax.random.key(0)
        return problem.start(problem.sample(key=key), key=key)[1]

    return jax.eval_shape(look)
