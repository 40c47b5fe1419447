"""Operations on shapes: reshape, transpose, broadcast, concatenate, slice, pad, flip; and constants."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from icmape_agent.kinds import MOST_ELEMENTS, Kind, Operation, Params, as_array, make_kind, need, whole, whole_numbers

FARTHEST = 2**31 - 1


def _constant_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    kind = make_kind(params["type"], params["shape"])
    as_array(params["values"], kind)
    return kind


def _constant(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[], Any]:
    values = as_array(params["values"], out)
    return lambda: values


def _affine_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    kind = make_kind(params["type"], params["shape"])
    need(not kind.is_float and kind.type != "bool", "it counts in whole numbers")
    steps = whole_numbers(params["steps"], -FARTHEST, FARTHEST, "steps")
    need(len(steps) == len(kind.shape), "it needs one step an axis")
    start = whole(params["start"], -FARTHEST, FARTHEST, "start")
    reach = [step * (size - 1) for step, size in zip(steps, kind.shape, strict=True) if size > 0]
    limits = np.iinfo(kind.type)
    low, high = start + sum(min(r, 0) for r in reach), start + sum(max(r, 0) for r in reach)
    need(limits.min <= low and high <= limits.max, "its numbers do not fit its type")
    return kind


def _affine(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[], Any]:
    def count() -> Any:
        total = np.full(out.shape, params["start"], out.type)
        for axis, step in enumerate(params["steps"]):
            along = (np.arange(out.shape[axis], dtype=np.int64) * step).astype(out.type)
            total += along.reshape([-1 if i == axis else 1 for i in range(len(out.shape))])
        return total

    return count


def _reshape_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    kind = make_kind(kinds[0].type, params["shape"])
    need(kind.size == kinds[0].size, f"shape {list(kinds[0].shape)} cannot become {list(kind.shape)}")
    return kind


def _reshape(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
    shape = out.shape
    return lambda x: x.reshape(shape)


def _transpose_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    shape = kinds[0].shape
    axes = whole_numbers(params["axes"], 0, len(shape) - 1, "axes")
    need(sorted(axes) == list(range(len(shape))), "axes must be a permutation")
    return Kind(kinds[0].type, tuple(shape[axis] for axis in axes))


def _transpose(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
    axes = tuple(params["axes"])
    return lambda x: x.transpose(axes)


def _broadcast_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    kind = make_kind(kinds[0].type, params["shape"])
    shape = kinds[0].shape
    need(len(shape) <= len(kind.shape), "a broadcast cannot remove axes")
    target = kind.shape[len(kind.shape) - len(shape) :]
    fits = all(a in (1, b) for a, b in zip(shape, target, strict=True))
    need(fits, f"shape {list(shape)} cannot be broadcast to {list(kind.shape)}")
    return kind


def _broadcast(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
    shape = out.shape
    return lambda x: np.broadcast_to(x, shape)


def _concatenate_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    first = kinds[0]
    axis = whole(params["axis"], 0, len(first.shape) - 1, "axis")
    rest = {(kind.type, len(kind.shape), kind.shape[:axis], kind.shape[axis + 1 :]) for kind in kinds}
    need(len(rest) == 1, "its operands do not fit")
    total = sum(kind.shape[axis] for kind in kinds)
    return make_kind(first.type, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _concatenate(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[..., Any]:
    axis = params["axis"]
    return lambda *xs: np.concatenate(xs, axis)


def _slice_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    shape = kinds[0].shape
    start, stop, step = (
        whole_numbers(params[name], low, MOST_ELEMENTS, name) for name, low in (("start", 0), ("stop", 0), ("step", 1))
    )
    need(len(start) == len(stop) == len(step) == len(shape), "it needs one range an axis")
    need(all(a <= b <= n for a, b, n in zip(start, stop, shape, strict=True)), "its ranges leave the operand")
    return Kind(kinds[0].type, tuple(-((a - b) // s) for a, b, s in zip(start, stop, step, strict=True)))


def _slice(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
    parts = tuple(map(slice, params["start"], params["stop"], params["step"]))
    return lambda x: x[parts]


def _pad_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    operand, value = kinds
    need(value.shape == () and value.type == operand.type, "it pads with one number of the operand's type")
    before, after = (whole_numbers(params[name], 0, MOST_ELEMENTS, name) for name in ("before", "after"))
    need(len(before) == len(after) == len(operand.shape), "it needs two widths an axis")
    return make_kind(operand.type, [a + n + b for a, n, b in zip(before, operand.shape, after, strict=True)])


def _pad(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any, Any], Any]:
    inner = tuple(slice(a, a + n) for a, n in zip(params["before"], kinds[0].shape, strict=True))

    def pad(x: Any, value: Any) -> Any:
        result = np.full(out.shape, value, out.type)
        result[inner] = x
        return result

    return pad


def _flip_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    whole_numbers(params["axes"], 0, len(kinds[0].shape) - 1, "axes")
    return kinds[0]


def _flip(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
    axes = tuple(params["axes"])
    return lambda x: np.flip(x, axes)


OPERATIONS: dict[str, Operation] = {
    "constant": Operation(0, frozenset({"type", "shape", "values"}), _constant_kind, _constant),
    "affine": Operation(0, frozenset({"type", "shape", "start", "steps"}), _affine_kind, _affine),
    "reshape": Operation(1, frozenset({"shape"}), _reshape_kind, _reshape),
    "transpose": Operation(1, frozenset({"axes"}), _transpose_kind, _transpose),
    "broadcast": Operation(1, frozenset({"shape"}), _broadcast_kind, _broadcast),
    "concatenate": Operation(-1, frozenset({"axis"}), _concatenate_kind, _concatenate),
    "slice": Operation(1, frozenset({"start", "stop", "step"}), _slice_kind, _slice),
    "pad": Operation(2, frozenset({"before", "after"}), _pad_kind, _pad),
    "flip": Operation(1, frozenset({"axes"}), _flip_kind, _flip),
}
