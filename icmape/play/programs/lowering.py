"""Lowers what JAX traced (a jaxpr) to the operations of a program."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

from icmape.play.programs.builder import Builder, Node, Refusal, Value
from icmape.play.programs.operations import RULES, Rule, Unsupported, stack
from icmape_agent.kinds import TYPES, Kind

MOST_UNROLLED = 2000  # equations of a loop, written out

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
    except Unsupported as error:
        return [Refusal(str(error))] * count
    results = results if isinstance(results, list) else [results]
    for result, variable in zip(results, equation.outvars, strict=True):
        assert result.kind == kind_of(variable.aval), (name, result.kind, variable.aval)
    return results


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
    return stack(build, {"axis": 0}, *(value for value in values if isinstance(value, Node)))


CONTROL: dict[str, Rule] = {"while": _while, "cond": _cond, "scan": _scan}
