"""Lowering of products: general products of tensors and convolutions become products of matrices."""

import itertools
from math import prod
from typing import Any

from icmape.play.programs.builder import Builder, Node

LARGE = 2**16  # elements of matrices that are not built


def dot_general(build: Builder, params: dict[str, Any], left: Node, right: Node) -> Node:
    """A product over any axes, with any axes in common."""
    (left_sum, right_sum), (left_batch, right_batch) = params["dimension_numbers"]
    wanted = params.get("preferred_element_type")
    if wanted is not None:
        left, right = (build.emit("convert", x, type=str(wanted)) for x in (left, right))
    left_free = [axis for axis in range(len(left.shape)) if axis not in (*left_sum, *left_batch)]
    right_free = [axis for axis in range(len(right.shape)) if axis not in (*right_sum, *right_batch)]
    batch = [left.shape[axis] for axis in left_batch]
    rows, columns = [left.shape[axis] for axis in left_free], [right.shape[axis] for axis in right_free]
    inner = prod(left.shape[axis] for axis in left_sum)
    lefts = build.emit("transpose", left, axes=[*left_batch, *left_free, *left_sum])
    rights = build.emit("transpose", right, axes=[*right_batch, *right_sum, *right_free])
    if batch:
        lefts = build.reshape(lefts, [prod(batch), prod(rows), inner])
        rights = build.reshape(rights, [prod(batch), inner, prod(columns)])
        if prod(rows) == 1:  # vectors are on the right
            flipped = build.reshape(lefts, [prod(batch), inner, 1])
            lefts, rights = build.emit("transpose", rights, axes=[0, 2, 1]), flipped
        if (product := _by_displacement(build, lefts, rights)) is not None:
            return build.reshape(product, [*batch, *rows, *columns])
    else:
        lefts = build.reshape(lefts, [prod(rows), inner] if rows else [inner])
        rights = build.reshape(rights, [inner, prod(columns)] if columns else [inner])
    return build.reshape(build.emit("matmul", lefts, rights), [*batch, *rows, *columns])


def _by_displacement(build: Builder, matrices: Node, vectors: Node) -> Node | None:
    """A product of vectors with matrices whose entries depend on differences of rows and columns; None for others.

    The matrices are taken from lists at positions start + a·(i - k) + b·j + c·m, with rows (i, j) and columns (k, m).
    Every difference i - k is multiplied once, and the products are added along the diagonals: that needs a fraction of
    the memory of the matrices.
    """
    counted = _counted(matrices)
    if counted is None or vectors.shape[2] != 1 or matrices.kind.size < LARGE:
        return None
    (down, across, deep, wide), start, (far, right, back, left) = counted
    lists, differences = matrices.operands[0], down + deep - 1
    if far != -back or (down * across, deep * wide) != matrices.shape[1:] or deep < 2:
        return None
    shape, count = [wide, differences, across], lists.shape[0]
    index = build.affine("int32", shape, start - far * (deep - 1), [left, far, right], shape=shape)
    pieces = build.reshape(build.emit("take", lists, index, axis=1), [count, wide, differences * across])
    product = build.emit("matmul", build.reshape(vectors, [count, deep, wide]), pieces)
    product = build.reshape(product, [count, deep * differences, across])
    stop = deep - 1 + deep * (differences - 1)
    product = build.emit("slice", product, start=[0, deep - 1, 0], stop=[count, stop, across], step=[1, 1, 1])
    product = build.reshape(product, [count, deep, differences - 1, across])
    product = build.emit("slice", product, start=[0] * 4, stop=[count, deep, down, across], step=[1] * 4)
    return build.reshape(build.emit("sum", product, axes=[1]), [count, down * across, 1])


def _counted(matrices: Node) -> tuple[list[int], int, list[int]] | None:
    """Shape, start and steps of the positions that matrices are taken from, if they count along four axes."""
    if matrices.name != "take" or matrices.params["axis"] != 1 or len(matrices.operands[0].shape) != 2:
        return None
    index = matrices.operands[1]
    index = index.operands[0] if index.name == "reshape" else index
    if index.name != "affine" or len(index.params["shape"]) != 4:
        return None
    return index.params["shape"], index.params["start"], index.params["steps"]


def convolution(build: Builder, params: dict[str, Any], operand: Node, kernel: Node) -> Node:
    """A convolution: one product of the kernel with the shifted copies of the operand."""
    numbers = params["dimension_numbers"]
    image = build.emit("transpose", operand, axes=[*_swapped(numbers.lhs_spec)])
    weights = build.emit("transpose", kernel, axes=list(numbers.rhs_spec))
    spread, steps = params["rhs_dilation"], params["window_strides"]
    before, after = zip(*params["padding"], strict=True) if params["padding"] else ((), ())
    zero = build.constant(0.0, operand.type)
    image = build.emit("pad", image, zero, before=[0, 0, *before], after=[0, 0, *after])
    window, reach = weights.shape[2:], image.shape[2:]
    extent = [(n - (w - 1) * d - 1) // s + 1 for n, w, d, s in zip(reach, window, spread, steps, strict=True)]
    channels, count = image.shape[:2]
    shifted = []
    for at in itertools.product(*map(range, window)):
        start = [0, 0, *(a * d for a, d in zip(at, spread, strict=True))]
        stop = [channels, count, *(b + (e - 1) * s + 1 for b, e, s in zip(start[2:], extent, steps, strict=True))]
        part = build.emit("slice", image, start=start, stop=stop, step=[1, 1, *steps])
        shifted.append(build.reshape(part, [channels, 1, count * prod(extent)]))
    columns = build.emit("concatenate", *shifted, axis=1)
    columns = build.reshape(columns, [channels * prod(window), count * prod(extent)])
    flat = build.reshape(weights, [weights.shape[0], channels * prod(window)])
    product = build.reshape(build.emit("matmul", flat, columns), [weights.shape[0], count, *extent])
    place = {axis: i for i, axis in enumerate(_swapped(numbers.out_spec))}
    return build.emit("transpose", product, axes=[place[axis] for axis in range(len(product.shape))])


def convolution_fits(params: dict[str, Any]) -> bool:
    """Whether a convolution is one that programs have: no groups, no dilated operand, no negative padding."""
    groups = params["feature_group_count"], params["batch_group_count"]
    dilated = any(n != 1 for n in params["lhs_dilation"])
    return groups == (1, 1) and not dilated and all(width >= 0 for pair in params["padding"] for width in pair)


def _swapped(spec: Any) -> list[int]:
    """Axes of channels, batch and space."""
    return [spec[1], spec[0], *spec[2:]]
