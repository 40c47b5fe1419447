"""Programs: lists of operations on arrays, as data. They are checked when they are read, and cannot run other code.

A function is {"inputs": [[type, shape], ...], "operations": [[name, operands, params], ...], "outputs": [...]}. Values
are numbered: first the inputs, then the results of the operations. Operands and outputs are such numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from icmape_agent import elementwise, reducing, shaping
from icmape_agent.kinds import MOST_OPERATIONS, MOST_WORK, TYPES, Kind, Operation, make_kind, need

OPERATIONS: dict[str, Operation] = {**elementwise.OPERATIONS, **shaping.OPERATIONS, **reducing.OPERATIONS}
PREFIX = "program."
"""Names of tensors that only a program reads begin with this."""
KEYS = {"inputs", "operations", "outputs"}
MOST_TOGETHER = 2**26  # elements of all values of a function


class Step(NamedTuple):
    """One operation of a function: the number of its result, and those of its operands."""

    result: int
    operands: tuple[int, ...]
    call: Callable[..., Any]


class Function:
    """A checked list of operations."""

    def __init__(
        self,
        inputs: Sequence[int],
        kinds: Sequence[Kind],
        steps: Sequence[Step],
        outputs: Sequence[int],
        known: Mapping[int, Any],
    ):
        self._inputs, self.kinds, self._outputs = tuple(inputs), tuple(kinds), tuple(outputs)
        self._steps, self._known = _folded(steps, outputs, dict(known))

    @property
    def inputs(self) -> list[Kind]:
        """Types and shapes of the inputs that are not given yet."""
        return [self.kinds[i] for i in self._inputs]

    @property
    def outputs(self) -> list[Kind]:
        """Types and shapes of the outputs."""
        return [self.kinds[i] for i in self._outputs]

    def __len__(self) -> int:
        """Number of operations of a call."""
        return len(self._steps)

    def given(self, *first: Any) -> "Function":
        """The function of the remaining inputs. What depends on the given ones only is computed once."""
        count = len(first)
        known = {**self._known, **{i: _as_kind(x, self.kinds[i]) for i, x in zip(self._inputs, first, strict=False)}}
        return Function(self._inputs[count:], self.kinds, self._steps, self._outputs, known)

    def __call__(self, *inputs: Any) -> list[Any]:
        """The outputs. Inputs must be arrays of the types and shapes of `inputs`."""
        values = dict(self._known)
        values.update(zip(self._inputs, inputs, strict=True))
        with np.errstate(all="ignore"):
            for result, operands, call in self._steps:
                values[result] = call(*[values[i] for i in operands])
        return [values[i] for i in self._outputs]


def _folded(
    steps: Sequence[Step], outputs: Sequence[int], known: dict[int, Any]
) -> tuple[tuple[Step, ...], dict[int, Any]]:
    """The steps that are needed and not yet known, and the known values that they need."""
    wanted, needed = set(outputs), []
    for step in reversed(steps):
        if step.result in wanted and step.result not in known:
            needed.append(step)
            wanted.update(step.operands)
    later = []
    with np.errstate(all="ignore"):
        for step in reversed(needed):
            if all(i in known for i in step.operands):
                known[step.result] = step.call(*[known[i] for i in step.operands])
            else:
                later.append(step)
    used = set(outputs).union(*(step.operands for step in later))
    return tuple(later), {i: value for i, value in known.items() if i in used}


def _as_kind(value: Any, kind: Kind) -> np.ndarray:
    return np.asarray(value, kind.type).reshape(kind.shape)


def read_functions(described: Any, tensors: Mapping[str, np.ndarray]) -> dict[str, Function]:
    """The functions of a description. Raises ValueError if it is not one, and for sizes beyond the limits."""
    need(isinstance(described, dict), "functions must be named")
    functions = {}
    for name, function in described.items():
        try:
            functions[name] = read_function(function, tensors)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"function {name}: {error}") from error
    return functions


def read_function(described: Any, tensors: Mapping[str, np.ndarray]) -> Function:
    """The function of a description; constants are computed."""
    need(isinstance(described, dict) and set(described) == KEYS, f"it must have the keys {', '.join(sorted(KEYS))}")
    kinds = [make_kind(*_pair(entry)) for entry in described["inputs"]]
    inputs, operations = range(len(kinds)), described["operations"]
    need(isinstance(operations, list) and len(operations) <= MOST_OPERATIONS, f"more than {MOST_OPERATIONS} operations")
    known, steps, work, elements = {}, [], 0, sum(kind.size for kind in kinds)
    for number, entry in enumerate(operations):
        try:
            name, operands, params = _triple(entry, len(kinds))
            if name == "tensor":
                kind, value = _tensor(params, tensors)
                known[len(kinds)] = value
            else:
                kind, step = _step(name, operands, params, kinds)
                steps.append(step)
                work += _work(name, [kinds[i] for i in operands], kind)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"operation {number}: {error}") from error
        elements += kind.size
        need(work <= MOST_WORK and elements <= MOST_TOGETHER, f"operation {number}: it takes too much time or memory")
        kinds.append(kind)
    outputs = described["outputs"]
    need(isinstance(outputs, list) and all(_is_value(i, len(kinds)) for i in outputs), "its outputs must be values")
    return Function(inputs, kinds, steps, outputs, known)


def infer(name: str, kinds: Sequence[Kind], params: dict[str, Any]) -> Kind:
    """Type and shape of the result of an operation. Raises ValueError if it does not exist or does not fit."""
    need(name in OPERATIONS, f"unknown operation {name!r}")
    operation = OPERATIONS[name]
    count = len(kinds) == operation.inputs or (operation.inputs < 0 and len(kinds) > 0)
    need(count, f"{name}: it takes {operation.inputs} operands")
    need(set(params) == operation.params, f"{name}: its parameters are {', '.join(sorted(operation.params)) or 'none'}")
    try:
        return operation.kind(kinds, params)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _step(name: str, operands: tuple[int, ...], params: dict[str, Any], kinds: Sequence[Kind]) -> tuple[Kind, Step]:
    given = [kinds[i] for i in operands]
    kind = infer(name, given, params)
    return kind, Step(len(kinds), operands, OPERATIONS[name].make(given, params, kind))


def _work(name: str, given: Sequence[Kind], kind: Kind) -> int:
    inner = given[0].shape[-1] if name == "matmul" else 1
    return int(kind.size * inner + sum(operand.size for operand in given))


def _tensor(params: dict[str, Any], tensors: Mapping[str, np.ndarray]) -> tuple[Kind, np.ndarray]:
    need(set(params) == {"name"} and params["name"] in tensors, f"the file has no tensor {params.get('name')!r}")
    name, value = params["name"], tensors[params["name"]]
    need(value.dtype.name in TYPES, f"{name} has the type {value.dtype}")
    need(name.startswith(PREFIX) or bool(np.isfinite(value).all()), f"{name} holds numbers that are not finite")
    return Kind(value.dtype.name, value.shape), value


def _pair(entry: Any) -> tuple[Any, Any]:
    need(isinstance(entry, list) and len(entry) == 2, "an input is a type and a shape")
    return entry[0], entry[1]


def _triple(entry: Any, count: int) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    need(isinstance(entry, list) and len(entry) == 3, "an operation is a name, operands and parameters")
    name, operands, params = entry
    need(isinstance(name, str) and isinstance(operands, list) and isinstance(params, dict), "an operation's parts")
    need(all(_is_value(i, count) for i in operands), "its operands must be values before it")
    return name, tuple(operands), params


def _is_value(number: Any, count: int) -> bool:
    return type(number) is int and 0 <= number < count
