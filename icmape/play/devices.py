"""Worlds and seeds split over several devices.

Evaluation plays worlds apart (`over_devices`), without communication. A training run sets a mesh (`training_mesh`):
its seeds are apart, and the worlds and batches of a seed are split, with sums over devices that XLA inserts.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, PartitionSpec
from jaxtyping import PyTree

from icmape.errors import UserError

Result = TypeVar("Result")
SEEDS, WORLDS = "seeds", "worlds"  # names of the axes of meshes


def all_devices() -> Mesh:
    """All devices of this process, in one row."""
    return Mesh(jax.local_devices(), (WORLDS,))


def leave_to_workers() -> None:
    """Let this process compute on the CPU, as those that it starts need the accelerators.

    JAX would take three quarters of an accelerator's memory here, as soon as a problem is built. A process that has
    computed already keeps its devices.
    """
    jax.config.update("jax_platforms", "cpu")


def over_devices(mesh: Mesh, function: Callable[[jax.Array], Result], rows: jax.Array) -> Result:
    """Apply a function of many rows on all devices, each to its share of the rows: their number must divide by theirs.

    The first axis of all results belongs to the rows.
    """
    if mesh.size == 1:
        return function(rows)
    split = PartitionSpec(WORLDS)
    spread: Callable[[jax.Array], Result] = jax.shard_map(
        function, mesh=mesh, in_specs=split, out_specs=split, check_vma=False
    )
    return spread(rows)


def training_mesh(seeds: int, devices: int | None = None) -> Mesh | None:
    """So many devices (default: all) for a run of so many seeds; None for a single device.

    Seeds are split first, as they need no communication, and the worlds of a seed among the devices that it gets. If
    the run has several processes, all devices share each seed, so that every process has the whole state.
    """
    available = jax.devices()
    if devices is not None and not 1 <= devices <= len(available):
        raise UserError(f"devices lies in 1..{len(available)}, the number that JAX finds here; given {devices}")
    chosen = available[:devices]
    if len(chosen) == 1:
        return None
    if jax.process_count() > 1 and devices is not None:
        raise UserError("a run in several processes takes all of their devices: leave out devices")
    apart = math.gcd(seeds, len(chosen)) if jax.process_count() == 1 else 1
    return Mesh(np.array(chosen).reshape(apart, -1), (SEEDS, WORLDS), axis_types=(AxisType.Auto, AxisType.Auto))


def on_mesh(mesh: Mesh | None) -> AbstractContextManager[Any]:
    """Programs that are compiled and called within it run on this mesh."""
    return nullcontext() if mesh is None else jax.set_mesh(mesh)


def share(rows: PyTree) -> PyTree:
    """Split the first axis of all arrays over the devices of a seed, where their numbers allow it."""
    if (count := _size(WORLDS)) == 1:
        return rows
    split = PartitionSpec(WORLDS)
    return jax.tree.map(lambda x: x if x.shape[0] % count else jax.lax.with_sharding_constraint(x, split), rows)


def in_batches(function: Callable[[PyTree], Any], rows: PyTree, most: int) -> Any:
    """A function of each row, applied to batches of at most so many rows. Each is split over the devices of a seed.

    A batch then has rows from everywhere, so that every device works on those that it has.
    """
    count = jax.tree.leaves(rows)[0].shape[0]
    number = math.ceil(count / most)
    if number == 1:
        return jax.vmap(function)(rows)
    if _size(WORLDS) == 1 or count % (number * _size(WORLDS)):
        return jax.lax.map(function, rows, batch_size=most)
    batches = jax.tree.map(lambda x: jnp.swapaxes(x.reshape(-1, number, *x.shape[1:]), 0, 1), rows)
    results = jax.lax.map(lambda batch: jax.vmap(function)(share(batch)), batches)
    return jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1).reshape(count, *x.shape[2:]), results)


def apart(function: Callable[[PyTree], Any], seeds: PyTree) -> Any:
    """A function of the states of many seeds, applied on each device to those that it gets."""
    if _size(SEEDS) == 1:
        return function(seeds)
    split = PartitionSpec(SEEDS)
    return jax.shard_map(function, in_specs=split, out_specs=split, axis_names={SEEDS}, check_vma=False)(seeds)


def waits_for_others() -> bool:
    """Whether a device may wait for those of other seeds: XLA moves parts of arrays between all devices at once.

    What moves them must then be done for every seed, or for none.
    """
    return _size(SEEDS) > 1 and _size(WORLDS) > 1


def settled(states: PyTree) -> PyTree:
    """States of all seeds as a program takes and returns them: apart by seed, whole on all devices of a seed."""
    if _size(SEEDS) * _size(WORLDS) == 1:
        return states
    return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, PartitionSpec(SEEDS)), states)


def placed(states: PyTree) -> PyTree:
    """The same for arrays, outside of programs."""
    if _size(SEEDS) * _size(WORLDS) == 1:
        return states
    return jax.jit(settled)(states)  # `device_put` cannot reach the devices of other processes


def free(tree: PyTree) -> PyTree:
    """Arrays of a mesh, whole on each of its devices, as arrays that a program on any other devices takes."""

    def freed(x: Any) -> Any:
        if not isinstance(x, jax.Array):
            return x
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(freed(jax.random.key_data(x)))
        return jnp.asarray(np.asarray(x))

    return jax.tree.map(freed, tree)


def _size(axis: str) -> int:
    """Of the current mesh; 1 without one, and where each device already works on its own share."""
    mesh = jax.sharding.get_abstract_mesh()
    return int(mesh.shape[axis]) if axis in mesh.auto_axes else 1
