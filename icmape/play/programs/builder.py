"""Builds the operations of a function: equal operations are one, small constants are computed, no-ops are left out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from icmape_agent.elementwise import OPERATIONS as ELEMENTWISE
from icmape_agent.kinds import Kind
from icmape_agent.program import OPERATIONS, infer

MOST_BUILT = 5000  # operations of a function before they are simplified; pretrained teams have a few hundred
SMALL = 64  # elements of a constant that is written into the program; larger ones are tensors


@dataclass(frozen=True)
class Refusal:
    """Takes the place of a value that a program cannot compute. Only an output that needs it is an error."""

    reason: str


@dataclass(eq=False)
class Node:
    """A value: the operation that computes it, and what is known of it."""

    name: str
    operands: tuple["Node", ...] = field(repr=False)  # a value may be used many times
    params: dict[str, Any]
    kind: Kind
    value: np.ndarray | None = None  # of a small constant
    bounds: tuple[int, int] | None = None  # of whole numbers, where known

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.kind.shape

    @property
    def type(self) -> str:
        """Type of its elements."""
        return self.kind.type


Value = Node | Refusal


@dataclass
class Builder:
    """The operations of one function. `tensors` collects large constants of all functions of a team."""

    tensors: dict[str, np.ndarray]
    inputs: list[Node] = field(default_factory=list)
    _nodes: dict[Any, Node] = field(default_factory=dict)
    _emitted: int = 0

    def input(self, kind: Kind, bounds: tuple[int, int] | None = None) -> Node:
        """One more input of the function."""
        self.inputs.append(Node("input", (), {"number": len(self.inputs)}, kind, bounds=bounds))
        return self.inputs[-1]

    def tensor(self, name: str, kind: Kind) -> Node:
        """A tensor of the team's file; one without elements is not stored there."""
        if kind.size == 0:
            return self.constant(np.zeros(kind.shape, kind.type))
        return self._node("tensor", (), {"name": name}, kind)

    def constant(self, value: Any, type_name: str | None = None) -> Node:
        """A constant: a number, numbers that count, or else a tensor of its own."""
        array = np.asarray(value, type_name)
        kind = Kind(array.dtype.name, array.shape)
        if array.size <= SMALL:
            return self._small(array)
        first = array.reshape(-1)[0]
        if np.array_equal(array, np.full_like(array, first), equal_nan=kind.is_float):
            return self.emit("broadcast", self.constant(first), shape=list(array.shape))
        counted = counting(array)
        if counted is not None:
            return self.affine(kind.type, *counted, shape=array.shape)
        known = [name for name, held in self.tensors.items() if _same(held, array)]
        name = known[0] if known else f"program.{len(self.tensors)}"
        self.tensors[name] = np.ascontiguousarray(array)
        return self._node("tensor", (), {"name": name}, kind)

    def affine(
        self, type_name: str, shape_as: Sequence[int], start: int, steps: Sequence[int], *, shape: Sequence[int]
    ) -> Node:
        """Numbers that count up or down along every axis of `shape_as`, in another shape."""
        kind = Kind(type_name, tuple(shape_as))
        params = {"type": type_name, "shape": list(shape_as), "start": int(start), "steps": [int(s) for s in steps]}
        if kind.size <= SMALL:
            return self._small(OPERATIONS["affine"].make((), params, kind)().reshape(shape))
        node = self._node("affine", (), params, kind)
        reach = [step * (size - 1) for step, size in zip(steps, shape_as, strict=True)]
        node.bounds = int(start) + sum(min(r, 0) for r in reach), int(start) + sum(max(r, 0) for r in reach)
        return self.reshape(node, shape)

    def reshape(self, node: Node, shape: Sequence[int]) -> Node:
        """A value in another shape."""
        result = self.emit("reshape", node, shape=[int(n) for n in shape])
        assert isinstance(result, Node)
        return result

    def emit(self, name: str, *operands: Node, **params: Any) -> Node:
        """The result of an operation, or of a simpler one that gives the same."""
        self._emitted += 1
        if self._emitted > MOST_BUILT:
            raise ValueError(f"it takes more than {MOST_BUILT:,} operations")
        params = {key: _plain(value) for key, value in params.items()}
        if (simple := self._simpler(name, operands, params)) is not None:
            return simple
        if name in ELEMENTWISE:
            operands = _without_broadcasts(operands, infer(name, [x.kind for x in operands], params).shape)
        kinds = [operand.kind for operand in operands]
        kind = infer(name, kinds, params)
        if kind.size <= SMALL and all(operand.value is not None for operand in operands):
            with np.errstate(all="ignore"):
                found = OPERATIONS[name].make(kinds, params, kind)(*(operand.value for operand in operands))
            return self._small(np.asarray(found, kind.type).reshape(kind.shape))
        node = self._node(name, operands, params, kind)
        node.bounds = _bounds(name, operands)
        return node

    def describe(self, outputs: Sequence[Node]) -> dict[str, Any]:
        """The function of these outputs as plain data (`icmape_agent.program`); what they do not need is left out."""
        numbers = {id(node): number for number, node in enumerate(self.inputs)}
        operations: list[list[Any]] = []
        pending = list(reversed(outputs))
        while pending:
            node = pending[-1]
            missing = [operand for operand in node.operands if id(operand) not in numbers]
            if id(node) in numbers or missing:
                pending.extend(reversed(missing)) if id(node) not in numbers else pending.pop()
                continue
            numbers[id(pending.pop())] = len(self.inputs) + len(operations)
            operations.append([node.name, [numbers[id(operand)] for operand in node.operands], node.params])
        return {
            "inputs": [[node.type, list(node.shape)] for node in self.inputs],
            "operations": operations,
            "outputs": [numbers[id(node)] for node in outputs],
        }

    def _small(self, array: np.ndarray) -> Node:
        kind = Kind(array.dtype.name, array.shape)
        params = {
            "type": kind.type,
            "shape": list(kind.shape),
            "values": [_number(v) for v in array.reshape(-1).tolist()],
        }
        node = self._node("constant", (), params, kind)
        node.value = array
        return node

    def _node(self, name: str, operands: tuple[Node, ...], params: dict[str, Any], kind: Kind) -> Node:
        key = name, tuple(id(operand) for operand in operands), json.dumps(params, sort_keys=True)
        return self._nodes.setdefault(key, Node(name, operands, params, kind))

    def _simpler(self, name: str, operands: tuple[Node, ...], params: Mapping[str, Any]) -> Node | None:
        first = operands[0] if operands else None
        if first is None or name in ("take", "put", "window"):
            return None
        if name in ("reshape", "broadcast") and tuple(params["shape"]) == first.shape:
            return first
        if name == first.name in ("reshape", "broadcast"):
            return self.emit(name, first.operands[0], **params) if name == "reshape" else None
        if name == "convert" and params["type"] == first.type:
            return first
        if name == "transpose":
            return self._simpler_transpose(first, params["axes"])
        if name == "concatenate" and len(operands) == 1:
            return first
        if name == "slice" and infer(name, [first.kind], dict(params)).shape == first.shape:
            return first
        if name in ("add", "mul"):
            return _neutral(operands, 0 if name == "add" else 1)
        if name == "select" and (only := _only(first)) is not None:
            return self._chosen(operands, bool(only))
        if name in ("lt", "ge"):
            return self._compared(name, operands)
        return None

    def _simpler_transpose(self, operand: Node, axes: Sequence[int]) -> Node | None:
        if operand.name == "transpose":
            before = operand.params["axes"]
            return self.emit("transpose", operand.operands[0], axes=[before[axis] for axis in axes])
        moved = [axis for axis in axes if operand.shape[axis] != 1]
        return self.reshape(operand, [operand.shape[axis] for axis in axes]) if moved == sorted(moved) else None

    def _chosen(self, operands: tuple[Node, ...], condition: bool) -> Node:
        chosen = operands[1] if condition else operands[2]
        shape = infer("select", [operand.kind for operand in operands], {}).shape
        return self.emit("broadcast", chosen, shape=list(shape))

    def _compared(self, name: str, operands: tuple[Node, ...]) -> Node | None:
        """A comparison with a number that every element is known to reach, or not."""
        known, level = limits(operands[0]), _only(operands[1])
        if known is None or level is None:
            return None
        if known[0] < level <= known[1]:
            return None
        shape = infer(name, [operand.kind for operand in operands], {}).shape
        return self.emit("broadcast", self.constant((known[0] >= level) == (name == "ge")), shape=list(shape))


def counting(array: np.ndarray) -> tuple[list[int], int, list[int]] | None:
    """Shape, start and steps of whole numbers that count along every axis of that shape; None for others."""
    if array.dtype.kind not in "iu":
        return None
    rest, shape, steps = array.reshape(-1).astype(np.int64), list[int](), list[int]()
    while len(rest) > 1:
        step = int(rest[1] - rest[0])
        breaks = np.flatnonzero(np.diff(rest) != step)
        run = int(breaks[0]) + 1 if len(breaks) else len(rest)
        if len(rest) % run or run == 1 or len(shape) == 6:
            return None
        rows = rest.reshape(-1, run)
        if not np.array_equal(rows, rows[:, :1] + step * np.arange(run)):
            return None
        shape.insert(0, run)
        steps.insert(0, step)
        rest = rows[:, 0]
    return shape, int(rest[0]), steps


def _without_broadcasts(operands: tuple[Node, ...], shape: tuple[int, ...]) -> tuple[Node, ...]:
    """Operands before they were broadcast, where the operation broadcasts them itself."""
    chosen = list(operands)
    for i, operand in enumerate(operands):
        if operand.name != "broadcast":
            continue
        shapes = [operand.operands[0].shape if i == j else other.shape for j, other in enumerate(chosen)]
        if np.broadcast_shapes(*shapes) == shape:
            chosen[i] = operand.operands[0]
    return tuple(chosen)


def _only(node: Node) -> Any:
    """The number that all elements are equal to; None if they differ, or are not known."""
    base = node.operands[0] if node.name == "broadcast" else node
    found = [] if base.value is None else np.unique(base.value).tolist()
    return found[0] if len(found) == 1 else None


def _neutral(operands: tuple[Node, ...], number: int) -> Node | None:
    """The other operand of a sum with 0 or a product with 1."""
    for one, other in (operands, operands[::-1]):
        if _only(one) == number and np.broadcast_shapes(one.shape, other.shape) == other.shape:
            return other
    return None


def _bounds(name: str, operands: tuple[Node, ...]) -> tuple[int, int] | None:
    """Bounds of whole numbers that are passed on."""
    if name in ("reshape", "broadcast", "convert", "slice", "transpose") and not operands[0].kind.is_float:
        return limits(operands[0])
    return None


def limits(node: Node) -> tuple[int, int] | None:
    """The least and the largest element of whole numbers, where known."""
    if node.value is not None and node.value.size and node.value.dtype.kind in "iu":
        return int(node.value.min()), int(node.value.max())
    return node.bounds


def strides(shape: Sequence[int]) -> list[int]:
    """Distances between neighbours along every axis, in elements, row by row."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _number(value: float | int | bool) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return int(value) if isinstance(value, bool) else value


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else value
