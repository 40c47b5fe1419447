"""How each operation of `jax.lax` is said in the operations of a program, in the order of JAX's documentation."""

from collections.abc import Callable
from typing import Any

import numpy as np

from icmape.play.programs import indexing, products
from icmape.play.programs.builder import Builder, Node
from icmape_agent.elementwise import OPERATIONS as ELEMENTWISE

TO_EVEN = 1  # jax.lax.RoundingMethod.TO_NEAREST_EVEN

Rule = Callable[..., Any]
SAME = frozenset(ELEMENTWISE) - {"select", "convert", "round", "pow"}


class Unsupported(Exception):
    """A use of an operation that programs do not have."""


def _broadcast_in_dim(build: Builder, params: dict[str, Any], operand: Node, *sizes: Node) -> Node:
    shape = [1] * len(params["shape"])
    for axis, target in enumerate(params["broadcast_dimensions"]):
        shape[target] = operand.shape[axis]
    return build.emit("broadcast", build.reshape(operand, shape), shape=list(params["shape"]))


def _to_shape(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    if params.get("dimensions") is not None:
        raise Unsupported("programs have no reshape that permutes")
    return build.reshape(operand, params["new_sizes"])


def _squeeze(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    dropped = {axis % len(operand.shape) for axis in params["dimensions"]}
    return build.reshape(operand, [n for axis, n in enumerate(operand.shape) if axis not in dropped])


def _expand(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    rest = iter(operand.shape)
    count = len(operand.shape) + len(params["dimensions"])
    return build.reshape(operand, [1 if axis in params["dimensions"] else next(rest) for axis in range(count)])


def _transpose(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    return build.emit("transpose", operand, axes=list(params["permutation"]))


def _flip(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    return build.emit("flip", operand, axes=list(params["dimensions"]))


def _concatenate(build: Builder, params: dict[str, Any], *operands: Node) -> Node:
    return build.emit("concatenate", *operands, axis=params["dimension"])


def stack(build: Builder, params: dict[str, Any], *operands: Node) -> Node:
    """Operands of one shape along a new axis."""
    axis, shape = params["axis"], operands[0].shape
    return build.emit(
        "concatenate", *(build.reshape(x, [*shape[:axis], 1, *shape[axis:]]) for x in operands), axis=axis
    )


def _slice(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    start = list(params["start_indices"])
    step = list(params["strides"] or [1] * len(start))
    return build.emit("slice", operand, start=start, stop=list(params["limit_indices"]), step=step)


def _split(build: Builder, params: dict[str, Any], operand: Node) -> list[Node]:
    axis, parts, first = params["axis"], [], 0
    for size in map(int, params["sizes"]):
        start, stop = [0] * len(operand.shape), list(operand.shape)
        start[axis], stop[axis] = first, first + size
        parts.append(build.emit("slice", operand, start=start, stop=stop, step=[1] * len(start)))
        first += size
    return parts


def _unstack(build: Builder, params: dict[str, Any], operand: Node) -> list[Node]:
    axis = params["axis"]
    shape = [n for i, n in enumerate(operand.shape) if i != axis]
    parts = _split(build, {"axis": axis, "sizes": [1] * operand.shape[axis]}, operand)
    return [build.reshape(part, shape) for part in parts]


def _pad(build: Builder, params: dict[str, Any], operand: Node, value: Node) -> Node:
    widths = params["padding_config"]
    if any(between for _, _, between in widths):
        raise Unsupported("programs have no padding between elements")
    before, after = [max(low, 0) for low, _, _ in widths], [max(high, 0) for _, high, _ in widths]
    padded = build.emit("pad", operand, value, before=before, after=after)
    start = [max(-low, 0) for low, _, _ in widths]
    stop = [n - max(-high, 0) for n, (_, high, _) in zip(padded.shape, widths, strict=True)]
    return build.emit("slice", padded, start=start, stop=stop, step=[1] * len(start))


def _iota(build: Builder, params: dict[str, Any]) -> Node:
    shape, wanted = params["shape"], str(np.dtype(params["dtype"]))
    steps = [int(axis == params["dimension"]) for axis in range(len(shape))]
    counted = "int32" if wanted.startswith("float") else wanted
    return build.emit("convert", build.affine(counted, shape, 0, steps, shape=shape), type=wanted)


def _convert(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    wanted = str(np.dtype(params["new_dtype"]))
    if wanted == "bool" and operand.type != "bool":
        return build.emit("ne", operand, build.constant(0, operand.type))
    return build.emit("convert", operand, type=wanted)


def _reduce_precision(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    bits = params["exponent_bits"], params["mantissa_bits"]
    if bits == (8, 23):
        return operand
    if bits != (5, 10):
        raise Unsupported("programs have 16-bit and 32-bit numbers only")
    return build.emit("convert", build.emit("convert", operand, type="float16"), type=operand.type)


def _same(name: str) -> Rule:
    return lambda build, params, *operands: build.emit(name, *operands)


def _shift(name: str) -> Rule:
    return lambda build, params, x, y: build.emit(name, x, build.emit("convert", y, type=x.type))


def _identity(build: Builder, params: dict[str, Any], *operands: Node) -> list[Node]:
    return list(operands)


def _select_n(build: Builder, params: dict[str, Any], which: Node, *cases: Node) -> Node:
    if which.type == "bool":
        return cases[0] if len(cases) == 1 else build.emit("select", which, cases[1], cases[0])
    chosen = cases[0]
    for number, case in enumerate(cases[1:], start=1):
        chosen = build.emit("select", build.emit("ge", which, build.constant(number, which.type)), case, chosen)
    return chosen


def _clamp(build: Builder, params: dict[str, Any], low: Node, operand: Node, high: Node) -> Node:
    return build.emit("min", build.emit("max", operand, low), high)


def _integer_pow(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    power, result, square = abs(int(params["y"])), None, operand
    while power:
        if power & 1:
            result = square if result is None else build.emit("mul", result, square)
        power >>= 1
        square = build.emit("mul", square, square) if power else square
    one = build.emit("broadcast", build.constant(1, operand.type), shape=list(operand.shape))
    result = one if result is None else result
    return build.emit("div", one, result) if params["y"] < 0 else result


def _pow(build: Builder, params: dict[str, Any], x: Node, y: Node) -> Node:
    return build.emit("pow", x, build.emit("convert", y, type=x.type))


def _rsqrt(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    return build.emit("div", build.constant(1, operand.type), build.emit("sqrt", operand))


def _square(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    return build.emit("mul", operand, operand)


def _round(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    if int(params["rounding_method"]) == TO_EVEN:
        return build.emit("round", operand)
    half = build.emit("add", build.emit("abs", operand), build.constant(0.5, operand.type))
    return build.emit("mul", build.emit("sign", operand), build.emit("floor", half))


def _reduce(name: str) -> Rule:
    return lambda build, params, operand: build.emit(name, operand, axes=list(params["axes"]))


def _logical(name: str) -> Rule:
    def rule(build: Builder, params: dict[str, Any], operand: Node) -> Node:
        if operand.type != "bool":
            raise Unsupported("programs have no bitwise reductions")
        return build.emit(name, operand, axes=list(params["axes"]))

    return rule


def _extreme(name: str) -> Rule:
    def rule(build: Builder, params: dict[str, Any], operand: Node) -> Node:
        if operand.type == "bool":
            return build.emit({"reduce_max": "any", "reduce_min": "all"}[name], operand, axes=list(params["axes"]))
        return build.emit(name, operand, axes=list(params["axes"]))

    return rule


def _best(name: str) -> Rule:
    def rule(build: Builder, params: dict[str, Any], operand: Node) -> Node:
        values = build.emit("convert", operand, type="int32") if operand.type == "bool" else operand
        found = build.emit(name, values, axis=params["axes"][0])
        return build.emit("convert", found, type=str(np.dtype(params["index_dtype"])))

    return rule


def _running(name: str) -> Rule:
    return lambda build, params, x: build.emit(name, x, axis=params["axis"], reverse=bool(params["reverse"]))


def _sort(build: Builder, params: dict[str, Any], *operands: Node) -> list[Node]:
    axis = params["dimension"]
    if len(operands) == 1:
        return [build.emit("sort", operands[0], axis=axis)]
    if params["num_keys"] != 1:
        raise Unsupported("programs sort by one key only")
    order = build.emit("argsort", operands[0], axis=axis, descending=False)
    return [indexing.along(build, operand, order, axis) for operand in operands]


def _top_k(build: Builder, params: dict[str, Any], operand: Node) -> list[Node]:
    last = len(operand.shape) - 1
    if params.get("axis", last) not in (last, -1):
        raise Unsupported("programs take the largest along the last axis only")
    order = build.emit("argsort", operand, axis=last, descending=True)
    start, stop = [0] * (last + 1), [*operand.shape[:-1], params["k"]]
    best = build.emit("slice", order, start=start, stop=stop, step=[1] * (last + 1))
    return [indexing.along(build, operand, best, last), best]


def _convolution(build: Builder, params: dict[str, Any], operand: Node, kernel: Node) -> Node:
    if not products.convolution_fits(params):
        raise Unsupported("programs have plain convolutions only")
    return products.convolution(build, params, operand, kernel)


def _scatter(how: str) -> Rule:
    return lambda build, params, *operands: indexing.scatter(build, params, how, *operands)


RULES: dict[str, Rule] = {
    **{name: _same(name) for name in SAME},
    **{name: _reduce(short) for name, short in (("reduce_sum", "sum"), ("reduce_prod", "prod"))},
    **{name: _extreme(name) for name in ("reduce_max", "reduce_min")},
    **{name: _logical(short) for name, short in (("reduce_and", "all"), ("reduce_or", "any"))},
    **{name: _best(name) for name in ("argmax", "argmin")},
    **{name: _running(name) for name in ("cumsum", "cummax", "cummin", "cumprod")},
    **{f"scatter{dash}{how}": _scatter(how) for how in ("add", "mul", "min", "max") for dash in "-_"},
    **dict.fromkeys(("copy", "copy_p", "stop_gradient", "optimization_barrier"), _identity),
    "shift_left": _shift("shift_left"),
    "shift_right_arithmetic": _shift("shift_right"),
    "shift_right_logical": _shift("shift_right_logical"),
    "scatter": _scatter("set"),
    "gather": indexing.gather,
    "dynamic_slice": indexing.dynamic_slice,
    "dynamic_update_slice": indexing.dynamic_update_slice,
    "dot_general": products.dot_general,
    "conv_general_dilated": _convolution,
    "broadcast_in_dim": _broadcast_in_dim,
    "reshape": _to_shape,
    "squeeze": _squeeze,
    "expand_dims": _expand,
    "transpose": _transpose,
    "rev": _flip,
    "concatenate": _concatenate,
    "stack": stack,
    "slice": _slice,
    "split": _split,
    "unstack": _unstack,
    "pad": _pad,
    "iota": _iota,
    "convert_element_type": _convert,
    "reduce_precision": _reduce_precision,
    "select_n": _select_n,
    "clamp": _clamp,
    "integer_pow": _integer_pow,
    "pow": _pow,
    "rsqrt": _rsqrt,
    "square": _square,
    "round": _round,
    "sort": _sort,
    "top_k": _top_k,
}
