"""Types and shapes of the values of a program, and the limits that bound its memory and time."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

TYPES = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32")
MOST_ELEMENTS = 2**24  # of one value
MOST_AXES = 8
MOST_WORK = 2**31  # multiplications and elements that one call of a function computes
MOST_OPERATIONS = 20_000


class Kind(NamedTuple):
    """Type and shape of a value."""

    type: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return self.type.startswith("float")


Params = dict[str, Any]


class Operation(NamedTuple):
    """One kind of step of a program."""

    inputs: int  # number of operands; -1: one or more
    params: frozenset[str]
    kind: Callable[[Sequence[Kind], Params], Kind]
    """Type and shape of the result. Raises ValueError for operands or parameters that do not fit."""
    make: Callable[[Sequence[Kind], Params, Kind], Callable[..., Any]]
    """The NumPy function of the operands."""


def need(condition: bool, what: str) -> None:
    """Raise ValueError unless a condition holds."""
    if not condition:
        raise ValueError(what)


def whole(value: Any, low: int, high: int, what: str) -> int:
    """A whole number in low..high."""
    need(type(value) is int and low <= value <= high, f"{what} must be a whole number in {low}..{high}")
    return int(value)


def whole_numbers(values: Any, low: int, high: int, what: str) -> tuple[int, ...]:
    """A short list of whole numbers in low..high."""
    need(isinstance(values, list | tuple) and len(values) <= MOST_AXES, f"{what} must be a short list")
    return tuple(whole(value, low, high, what) for value in values)


def make_kind(type_name: Any, shape: Any) -> Kind:
    """A checked type and shape."""
    need(isinstance(type_name, str) and type_name in TYPES, f"unknown type {type_name!r}")
    kind = Kind(type_name, whole_numbers(shape, 0, MOST_ELEMENTS, "a shape"))
    need(kind.size <= MOST_ELEMENTS, f"a value of shape {list(kind.shape)} is too large")
    return kind


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape of operands of an elementwise operation."""
    axes = max(map(len, shapes))
    padded = [(1,) * (axes - len(shape)) + shape for shape in shapes]
    common = []
    for sizes in zip(*padded, strict=True):
        others = {size for size in sizes if size != 1}
        need(len(others) <= 1, f"shapes {[list(shape) for shape in shapes]} do not fit")
        common.append(others.pop() if others else 1)
    return tuple(common)


def as_array(values: Any, kind: Kind) -> np.ndarray:
    """Numbers of a description as an array; infinities and NaN are strings."""
    need(isinstance(values, list) and len(values) == kind.size, f"a constant needs {kind.size} values")
    need(all(isinstance(v, int | float) or v in ("Infinity", "-Infinity", "NaN") for v in values), "a constant's value")
    if kind.is_float:
        return np.array([float(v) for v in values], kind.type).reshape(kind.shape)
    need(all(isinstance(v, int) for v in values), "a constant's values must be whole numbers")
    return np.array(values, kind.type).reshape(kind.shape)
