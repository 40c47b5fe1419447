"""Lowering of indexing: gather, scatter and dynamic slices become `take`, `put` and `window` at flat positions."""

from collections.abc import Sequence
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from icmape.play.programs.builder import Builder, Node, limits, strides


def gather(build: Builder, params: dict[str, Any], operand: Node, indices: Node) -> Node:
    """Slices of equal size at many positions."""
    numbers, sizes = _plain(params["dimension_numbers"]), [int(n) for n in params["slice_sizes"]]
    batch, shape = indices.shape[:-1], operand.shape
    hidden = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    shown = [axis for axis in range(len(shape)) if axis not in hidden]
    room = [n - size for n, size in zip(shape, sizes, strict=True)]
    parts = _positions(build, indices, numbers.start_index_map)
    outside = _outside(build, parts, room) if "FILL" in str(params["mode"]) else None
    axes = list(numbers.start_index_map)
    one_axis = len(axes) == 1 and list(hidden) == axes and all(room[axis] == 0 for axis in shown)
    if one_axis and sizes[axes[0]] == 1:
        taken = build.emit("take", operand, parts[axes[0]], axis=axes[0])
        before = len([axis for axis in shown if axis < axes[0]])
        order = [*range(before, before + len(batch)), *range(before), *range(before + len(batch), len(taken.shape))]
        taken = build.emit("transpose", taken, axes=order)
    else:
        clamped = {axis: _clamp(build, part, room[axis]) for axis, part in parts.items()}
        clamped |= _batching(build, batch, numbers.operand_batching_dims, numbers.start_indices_batching_dims)
        flat = _flat(build, clamped, batch, [sizes[axis] for axis in shown], shown, shape)
        taken = build.emit("take", build.reshape(operand, [prod(shape)]), flat, axis=0)
    if outside is not None:
        wide = build.reshape(outside, [*batch, *(1 for _ in shown)])
        taken = build.emit("select", wide, build.constant(_fill(params, operand.type), operand.type), taken)
    offset = list(numbers.offset_dims)
    rest = [axis for axis in range(len(taken.shape)) if axis not in offset]
    place = {axis: i for i, axis in enumerate([*rest, *offset])}
    return build.emit("transpose", taken, axes=[place[axis] for axis in range(len(taken.shape))])


def scatter(build: Builder, params: dict[str, Any], how: str, operand: Node, indices: Node, updates: Node) -> Node:
    """Changes at many positions; those outside are dropped, or moved to the edge."""
    numbers, batch, shape = _plain(params["dimension_numbers"]), indices.shape[:-1], operand.shape
    hidden = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    shown = [axis for axis in range(len(shape)) if axis not in hidden]
    window = list(numbers.update_window_dims)
    sizes = [updates.shape[axis] for axis in window]
    room = [n - (sizes[shown.index(axis)] if axis in shown else 1) for axis, n in enumerate(shape)]
    parts = _positions(build, indices, numbers.scatter_dims_to_operand_dims)
    outside = None if "CLIP" in str(params["mode"]) else _outside(build, parts, room)
    clamped = {axis: _clamp(build, part, room[axis]) for axis, part in parts.items()}
    clamped |= _batching(build, batch, numbers.operand_batching_dims, numbers.scatter_indices_batching_dims)
    flat = _flat(build, clamped, batch, sizes, shown, shape)
    if outside is not None:
        wide = build.reshape(outside, [*batch, *(1 for _ in shown)])
        flat = build.emit("select", wide, build.constant(-1, "int32"), flat)
    rest = [axis for axis in range(len(updates.shape)) if axis not in window]
    ordered = build.emit("transpose", updates, axes=[*rest, *window])
    return _put(build, how, operand, flat, ordered)


def dynamic_slice(build: Builder, params: dict[str, Any], operand: Node, *starts: Node) -> Node:
    """One slice at a position that data decide."""
    for axis, (size, start) in enumerate(zip(params["slice_sizes"], starts, strict=True)):
        if size < operand.shape[axis]:
            operand = build.emit("window", operand, build.emit("convert", start, type="int32"), axis=axis, size=size)
    return operand


def dynamic_update_slice(build: Builder, params: dict[str, Any], operand: Node, update: Node, *starts: Node) -> Node:
    """The same for a change."""
    shape = operand.shape
    room = [n - m for n, m in zip(shape, update.shape, strict=True)]
    clamped = {
        axis: _clamp(build, build.emit("convert", start, type="int32"), room[axis]) for axis, start in enumerate(starts)
    }
    flat = _flat(build, clamped, (), update.shape, range(len(shape)), shape)
    return _put(build, "set", operand, flat, update)


def along(build: Builder, operand: Node, index: Node, axis: int) -> Node:
    """The elements that an index chooses along an axis, in its shape."""
    steps = [0 if i == axis else step for i, step in enumerate(strides(operand.shape))]
    stride = build.constant(strides(operand.shape)[axis], "int32")
    base = build.affine("int32", index.shape, 0, steps, shape=index.shape)
    flat = build.emit("add", base, build.emit("mul", index, stride))
    return build.emit("take", build.reshape(operand, [prod(operand.shape)]), flat, axis=0)


def _plain(numbers: Any) -> SimpleNamespace:
    """Dimension numbers as plain whole numbers."""
    return SimpleNamespace(**{name: [int(n) for n in axes] for name, axes in numbers._asdict().items()})


def _put(build: Builder, how: str, operand: Node, flat: Node, updates: Node) -> Node:
    size = prod(updates.shape)
    listed = build.reshape(operand, [prod(operand.shape)])
    put = build.emit("put", listed, build.reshape(flat, [size]), build.reshape(updates, [size]), how=how)
    return build.reshape(put, operand.shape)


def _positions(build: Builder, indices: Node, axes: Sequence[int]) -> dict[int, Node]:
    """The position along each axis, as int32 in the shape of the batch."""
    batch = indices.shape[:-1]
    parts = {}
    for i, axis in enumerate(axes):
        start, stop = [*(0 for _ in batch), i], [*batch, i + 1]
        part = build.emit("slice", indices, start=start, stop=stop, step=[1] * len(start))
        parts[axis] = build.emit("convert", build.reshape(part, batch), type="int32")
    return parts


def _outside(build: Builder, parts: dict[int, Node], room: Sequence[int]) -> Node | None:
    """Where a position leaves the operand; None if none can."""
    found: Node | None = None
    for axis, part in parts.items():
        known = limits(part)
        if known is not None and known[0] >= 0 and known[1] <= room[axis]:
            continue
        low = build.emit("lt", part, build.constant(0, "int32"))
        high = build.emit("gt", part, build.constant(room[axis], "int32"))
        here = build.emit("or", low, high)
        found = here if found is None else build.emit("or", found, here)
    return found


def _clamp(build: Builder, part: Node, most: int) -> Node:
    known = limits(part)
    if known is not None and known[0] >= 0 and known[1] <= most:
        return part
    return build.emit("min", build.emit("max", part, build.constant(0, "int32")), build.constant(most, "int32"))


def _batching(build: Builder, batch: Sequence[int], operand: Sequence[int], indices: Sequence[int]) -> dict[int, Node]:
    """Positions that count along an axis which operand and indices share."""
    found = {}
    for axis, index_axis in zip(operand, indices, strict=True):
        steps = [int(i == index_axis) for i in range(len(batch))]
        found[axis] = build.affine("int32", batch, 0, steps, shape=batch)
    return found


def _flat(
    build: Builder,
    parts: dict[int, Node],
    batch: Sequence[int],
    sizes: Sequence[int],
    shown: Sequence[int],
    shape: Sequence[int],
) -> Node:
    """Flat positions of every element of every slice (batch, then the slice)."""
    distance = strides(shape)
    inner = build.affine("int32", sizes, 0, [distance[axis] for axis in shown], shape=[*(1 for _ in batch), *sizes])
    total = build.emit("broadcast", inner, shape=[*batch, *sizes])
    for axis, part in parts.items():
        far = build.emit("mul", part, build.constant(distance[axis], "int32"))
        total = build.emit("add", total, build.reshape(far, [*batch, *(1 for _ in sizes)]))
    return total


def _fill(params: dict[str, Any], type_name: str) -> Any:
    """The value outside, as in `jax.lax.gather`."""
    if params.get("fill_value") is not None:
        return params["fill_value"]
    if type_name == "bool":
        return True
    if type_name.startswith("float"):
        return float("nan")
    return np.iinfo(type_name).max if type_name.startswith("u") else np.iinfo(type_name).min
