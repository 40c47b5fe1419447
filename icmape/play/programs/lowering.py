"""Lowers what JAX traced (a jaxpr) to the operations of a program."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

from icmape.play.programs import indexing, products
from icmape.play.programs.builder import Builder, Node, Refusal, Value
from icmape_agent.elementwise import OPERATIONS as ELEMENTWISE
from icmape_agent.kinds import TYPES, Kind

TO_EVEN = 1  # jax.lax.RoundingMethod.TO_NEAREST_EVEN
MOST_UNROLLED = 2000  # equations of a loop, written out

Rule = Callable[..., Any]
SAME = frozenset(ELEMENTWISE) - {"select", "convert", "round", "pow"}
INNER = {  # what only wraps a function: the parameter that holds it
    **dict.fromkeys(("jit", "pjit", "checkpoint", "remat", "remat2"), "jaxpr"),
    **dict.fromkeys(("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"),
    **{"custom_vjp_call_jaxpr": "fun_jaxpr", "custom_lin": "jaxpr"},
}


def kind_of(aval: Any) -> Kind | None:
    """Type and shape of what JAX traced; None for types that programs do not have."""
    name = str(aval.dtype)
    return Kind(name, tuple(int(n) for n in aval.shape)) if name in TYPES else None


def lower(build: Builder, jaxpr: Any, constants: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
    """The outputs of a jaxpr."""
    known: dict[Any, Value] = {}

    def read(atom: Any) -> Value:
        return _constant(build, atom.val, atom.aval) if hasattr(atom, "val") else known[atom]

    known.update((var, _constant(build, x, var.aval)) for var, x in zip(jaxpr.constvars, constants, strict=True))
    known.update(zip(jaxpr.invars, inputs, strict=True))
    for equation in jaxpr.eqns:
        results = _equation(build, equation, [read(atom) for atom in equation.invars])
        known.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _constant(build: Builder, value: Any, aval: Any) -> Value:
    if "key<" in str(aval.dtype):
        return Refusal("it draws random numbers")
    kind = kind_of(aval)
    if kind is None:
        return Refusal(f"programs have no numbers of type {aval.dtype}")
    return build.constant(np.asarray(value, kind.type))


def _equation(build: Builder, equation: Any, operands: list[Value]) -> list[Value]:
    name, params, count = equation.primitive.name, equation.params, len(equation.outvars)
    if name in INNER:
        return _inline(build, params[INNER[name]], operands)
    if name in CONTROL:
        return CONTROL[name](build, params, operands, count)
    if name.startswith(("random_", "threefry")):
        return [Refusal("it draws random numbers")] * count
    refused = [operand for operand in operands if isinstance(operand, Refusal)]
    rule = RULES.get(name)
    if refused or rule is None:
        return [refused[0] if refused else Refusal(f"programs have no {name}")] * count
    if any(kind_of(variable.aval) is None for variable in equation.outvars):
        return [Refusal(f"programs have no numbers of type {equation.outvars[0].aval.dtype}")] * count
    try:
        results = rule(build, params, *operands)
    except _Unsupported as error:
        return [Refusal(str(error))] * count
    results = results if isinstance(results, list) else [results]
    for result, variable in zip(results, equation.outvars, strict=True):
        assert result.kind == kind_of(variable.aval), (name, result.kind, variable.aval)
    return results


class _Unsupported(Exception):
    """A use of an operation that programs do not have."""


def _inline(build: Builder, inner: Any, operands: Sequence[Value]) -> list[Value]:
    if hasattr(inner, "consts"):
        return lower(build, inner.jaxpr, inner.consts, operands)
    return lower(build, inner, (), operands)


# -- control flow


def _while(build: Builder, params: dict[str, Any], operands: list[Value], count: int) -> list[Value]:
    return [Refusal("it has a loop whose length depends on data")] * count


def _cond(build: Builder, params: dict[str, Any], operands: list[Value], count: int) -> list[Value]:
    """Both branches are computed; the index chooses."""
    index, *rest = operands
    branches = [_inline(build, branch, rest) for branch in params["branches"]]
    if isinstance(index, Refusal):
        return [index] * count
    chosen = branches[0]
    for number, branch in enumerate(branches[1:], start=1):
        level = build.emit("ge", index, build.constant(number, index.type))
        chosen = [_select(build, level, yes, no) for yes, no in zip(branch, chosen, strict=True)]
    return chosen


def _select(build: Builder, condition: Node, yes: Value, no: Value) -> Value:
    if isinstance(yes, Refusal) or isinstance(no, Refusal):
        return yes if isinstance(yes, Refusal) else no
    return build.emit("select", condition, yes, no)


def _scan(build: Builder, params: dict[str, Any], operands: list[Value], count: int) -> list[Value]:
    """A loop of known length, written out."""
    length, inner = params["length"], params["jaxpr"]
    fixed, carried = params["num_consts"], params["num_carry"]
    if length * len(inner.jaxpr.eqns) > MOST_UNROLLED:
        if carried:
            return [Refusal(f"it has a loop of {length} rounds")] * count
        return _inline(build, _all_rounds(inner, fixed, length), operands)
    consts, carry, rows = operands[:fixed], operands[fixed : fixed + carried], operands[fixed + carried :]
    numbers = range(length)[:: -1 if params["reverse"] else 1]
    found: list[list[Value]] = [[] for _ in range(count - carried)]
    for number in numbers:
        row = [_row(build, each, number) for each in rows]
        results = _inline(build, inner, [*consts, *carry, *row])
        carry = results[:carried]
        for column, value in zip(found, results[carried:], strict=True):
            column.append(value)
    return [*carry, *(_stacked(build, column[:: -1 if params["reverse"] else 1]) for column in found)]


def _all_rounds(inner: Any, fixed: int, length: int) -> Any:
    """The rounds of a loop that carries nothing from one to the next, as one computation."""
    body, kinds = jaxpr_as_fun(inner), inner.in_avals
    together = jax.vmap(body, in_axes=[None if i < fixed else 0 for i in range(len(kinds))])
    rows = [jax.ShapeDtypeStruct(x.shape if i < fixed else (length, *x.shape), x.dtype) for i, x in enumerate(kinds)]
    return jax.make_jaxpr(together)(*rows)


def _row(build: Builder, rows: Value, number: int) -> Value:
    if isinstance(rows, Refusal):
        return rows
    start = [number] + [0] * (len(rows.shape) - 1)
    part = build.emit("slice", rows, start=start, stop=[number + 1, *rows.shape[1:]], step=[1] * len(start))
    return build.reshape(part, rows.shape[1:])


def _stacked(build: Builder, values: list[Value]) -> Value:
    refused = [value for value in values if isinstance(value, Refusal)]
    if refused or not values:
        return refused[0] if refused else Refusal("it has a loop of no rounds")
    return _stack(build, {"axis": 0}, *(value for value in values if isinstance(value, Node)))


CONTROL: dict[str, Rule] = {"while": _while, "cond": _cond, "scan": _scan}

# -- operations, in the order of the documentation of jax.lax


def _broadcast_in_dim(build: Builder, params: dict[str, Any], operand: Node, *sizes: Node) -> Node:
    shape = [1] * len(params["shape"])
    for axis, target in enumerate(params["broadcast_dimensions"]):
        shape[target] = operand.shape[axis]
    return build.emit("broadcast", build.reshape(operand, shape), shape=list(params["shape"]))


def _to_shape(build: Builder, params: dict[str, Any], operand: Node) -> Node:
    if params.get("dimensions") is not None:
        raise _Unsupported("programs have no reshape that permutes")
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


def _stack(build: Builder, params: dict[str, Any], *operands: Node) -> Node:
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
        raise _Unsupported("programs have no padding between elements")
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
        raise _Unsupported("programs have 16-bit and 32-bit numbers only")
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
            raise _Unsupported("programs have no bitwise reductions")
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
        raise _Unsupported("programs sort by one key only")
    order = build.emit("argsort", operands[0], axis=axis, descending=False)
    return [indexing.along(build, operand, order, axis) for operand in operands]


def _top_k(build: Builder, params: dict[str, Any], operand: Node) -> list[Node]:
    last = len(operand.shape) - 1
    if params.get("axis", last) not in (last, -1):
        raise _Unsupported("programs take the largest along the last axis only")
    order = build.emit("argsort", operand, axis=last, descending=True)
    start, stop = [0] * (last + 1), [*operand.shape[:-1], params["k"]]
    best = build.emit("slice", order, start=start, stop=stop, step=[1] * (last + 1))
    return [indexing.along(build, operand, best, last), best]


def _convolution(build: Builder, params: dict[str, Any], operand: Node, kernel: Node) -> Node:
    if not products.convolution_fits(params):
        raise _Unsupported("programs have plain convolutions only")
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
    "stack": _stack,
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
