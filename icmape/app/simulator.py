"""One round of a world as a program (`icmape_agent.program`), with what chance draws as an input.

`Problem.step` is traced by JAX. What depends on its random key alone is computed here, before anybody plays; the rest
is a function of the world, the state, the actions and these draws, which any runtime of programs runs.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PyTree

from icmape.errors import UserError
from icmape.play.programs.builder import Builder, Node, Refusal
from icmape.play.programs.lowering import INNER, kind_of, lower
from icmape.problem import Problem

SPREADS = ("broadcast_in_dim", "reshape", "convert_element_type", "squeeze", "expand_dims")
"""Operations that the program repeats rather than have their results stored: they add nothing that was drawn."""


class Simulator(NamedTuple):
    """The round of a problem."""

    function: dict[str, Any]
    """The program. Inputs: draws, parts of the world, parts of the state, actions; outputs: state and observation."""
    draw: Callable[[Key[Array, ""]], list[Array]]
    """The draws of a round from the key of its step."""


def simulator(problem: Problem, world: Any, state: PyTree, tensors: dict[str, np.ndarray]) -> Simulator:
    """The simulator of a problem; `tensors` collects the constants of its program. World and state are examples."""
    inputs = jax.tree.leaves((world, state, jnp.zeros(problem.agents, jnp.int32)))
    structure = jax.tree.structure((world, state, 0))

    def step(key: Key[Array, ""], *leaves: Array) -> PyTree:
        world, state, actions = jax.tree.unflatten(structure, leaves)
        return problem.step(world, state, actions, key=key)

    closed = jax.make_jaxpr(step)(jax.random.key(0), *inputs)
    flat = jax.make_jaxpr(partial(_run, closed.jaxpr, closed.consts))(jax.random.key(0), *inputs)
    early, later, drawn = _parted(flat.jaxpr)
    known = dict(zip(flat.jaxpr.constvars, flat.consts, strict=True))

    def draw(key: Key[Array, ""]) -> list[Array]:
        values = {**known, flat.jaxpr.invars[0]: key}
        _equations(early, values)
        return [values[variable] for variable in drawn]

    build = Builder(tensors)
    given = [_input(build, problem, variable.aval) for variable in (*drawn, *flat.jaxpr.invars[1:])]
    rest = SimpleNamespace(
        constvars=flat.jaxpr.constvars,
        invars=[*drawn, *flat.jaxpr.invars[1:]],
        eqns=later,
        outvars=flat.jaxpr.outvars,
    )
    outputs = lower(build, rest, flat.consts, given)
    if refused := [output for output in outputs if isinstance(output, Refusal)]:
        raise _not_simulated(problem, refused[0].reason)
    return Simulator(build.describe([output for output in outputs if isinstance(output, Node)]), draw)


def _input(build: Builder, problem: Problem, aval: Any) -> Node:
    kind = None if "key<" in str(aval.dtype) else kind_of(aval)
    if kind is None:
        raise _not_simulated(problem, f"its rounds need values of type {aval.dtype}, which programs do not have")
    return build.input(kind)


def _not_simulated(problem: Problem, reason: str) -> UserError:
    return UserError(f"a browser cannot simulate {type(problem).__name__}: {reason}")


def _run(jaxpr: Any, consts: Sequence[Any], *inputs: Any) -> list[Any]:
    """The outputs of a jaxpr. Traced again, functions inside it are written out."""
    values = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(zip(jaxpr.invars, inputs, strict=True))
    _equations(jaxpr.eqns, values)
    return [_value(atom, values) for atom in jaxpr.outvars]


def _equations(equations: Iterable[Any], values: dict[Any, Any]) -> None:
    """Compute the results of equations."""
    for equation in equations:
        name, operands = equation.primitive.name, [_value(atom, values) for atom in equation.invars]
        if name in INNER:
            inner = equation.params[INNER[name]]
            closed = hasattr(inner, "consts")
            results = _run(inner.jaxpr if closed else inner, inner.consts if closed else (), *operands)
        else:
            found = equation.primitive.bind(*operands, **equation.params)
            results = found if equation.primitive.multiple_results else [found]
        values.update(zip(equation.outvars, results, strict=True))


def _value(atom: Any, values: dict[Any, Any]) -> Any:
    return atom.val if hasattr(atom, "val") else values[atom]


def _parted(jaxpr: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Equations that depend on the key alone, all others, and results of the former that the latter read.

    Equations of constants are among both.
    """
    drawn, played = {jaxpr.invars[0]}, set(jaxpr.invars[1:])
    early, later = [], []
    for equation in jaxpr.eqns:
        operands = {atom for atom in equation.invars if not hasattr(atom, "val")}
        if operands & played or (operands & drawn and _only_spreads(equation)):
            later.append(equation)
            played.update(equation.outvars)
        elif operands & drawn:
            early.append(equation)
            drawn.update(equation.outvars)
        else:
            early.append(equation)
            later.append(equation)
    used = [atom for equation in later for atom in equation.invars] + list(jaxpr.outvars)
    return early, later, list(dict.fromkeys(atom for atom in used if not hasattr(atom, "val") and atom in drawn))


def _only_spreads(equation: Any) -> bool:
    """Whether the result is its operand, repeated or in another type."""
    operand = equation.invars[0].aval
    return equation.primitive.name in SPREADS and kind_of(operand) is not None
