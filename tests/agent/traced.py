"""Functions of JAX as programs."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from icmape.play.programs.builder import Builder
from icmape.play.programs.lowering import kind_of, lower
from icmape_agent.program import Function, read_function


class Traced(NamedTuple):
    described: dict[str, Any]  # as it comes out of a file
    tensors: dict[str, np.ndarray]

    @property
    def function(self) -> Function:
        return read_function(self.described, self.tensors)

    @property
    def names(self) -> set[str]:
        return {name for name, _, _ in self.described["operations"]}


def traced(function: Callable[..., Any], *inputs: Any) -> Traced:
    """The program of a function. A `Refusal` in place of an output fails here."""
    closed = jax.make_jaxpr(function)(*inputs)
    build = Builder({})
    given = [build.input(kind_of(x)) for x in inputs]
    outputs = lower(build, closed.jaxpr, closed.consts, given)
    return Traced(json.loads(json.dumps(build.describe(outputs))), build.tensors)
