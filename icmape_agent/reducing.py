"""Operations over axes and positions: reductions, running sums, sorting, products, indexing."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from icmape_agent.kinds import MOST_ELEMENTS, Kind, Operation, Params, make_kind, need, whole, whole_numbers

REDUCTIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
LOGICAL = {"all": np.logical_and, "any": np.logical_or}
RUNNING = {"cumsum": np.add, "cummax": np.maximum, "cummin": np.minimum, "cumprod": np.multiply}
AT_ONCE = 2**18  # multiplications of one product of matrices
UPDATES: dict[str, Any] = {"set": None, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def _axes(kind: Kind, params: Params) -> tuple[int, ...]:
    axes = whole_numbers(params["axes"], 0, len(kind.shape) - 1, "axes")
    need(len(set(axes)) == len(axes), "an axis is named twice")
    return axes


def _reduced(kinds: Sequence[Kind], params: Params) -> Kind:
    axes = _axes(kinds[0], params)
    return Kind(kinds[0].type, tuple(n for i, n in enumerate(kinds[0].shape) if i not in axes))


def _reduction_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    need(kinds[0].type != "bool", "it takes numbers")
    return _reduced(kinds, params)


def _extreme_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    need(kinds[0].size > 0, "it takes at least one element")
    return _reduction_kind(kinds, params)


def _logical_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    need(kinds[0].type == "bool", "it takes bools")
    return _reduced(kinds, params)


def _reduce(function: Any) -> Callable[..., Callable[[Any], Any]]:
    def make(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
        axes, kind = tuple(params["axes"]), np.dtype(out.type)
        return lambda x: function.reduce(x, axis=axes, dtype=kind)

    return make


def _axis(kind: Kind, params: Params) -> int:
    return whole(params["axis"], 0, len(kind.shape) - 1, "axis")


def _best_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    axis, shape = _axis(kinds[0], params), kinds[0].shape
    need(shape[axis] > 0, "it takes at least one element")
    return Kind("int32", shape[:axis] + shape[axis + 1 :])


def _best(function: Any) -> Callable[..., Callable[[Any], Any]]:
    def make(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
        axis = params["axis"]
        return lambda x: np.asarray(function(x, axis)).astype(np.int32)

    return make


def _running_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    _axis(kinds[0], params)
    need(kinds[0].type != "bool", "it takes numbers")
    need(type(params["reverse"]) is bool, "reverse must be true or false")
    return kinds[0]


def _running(function: Any) -> Callable[..., Callable[[Any], Any]]:
    def make(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
        axis, kind = params["axis"], np.dtype(out.type)
        if params["reverse"]:
            return lambda x: np.flip(function.accumulate(np.flip(x, axis), axis, dtype=kind), axis)
        return lambda x: function.accumulate(x, axis, dtype=kind)

    return make


def _sort_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    _axis(kinds[0], params)
    return kinds[0]


def _sort(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
    axis = params["axis"]
    return lambda x: np.sort(x, axis, kind="stable")


def _argsort_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    _axis(kinds[0], params)
    need(type(params["descending"]) is bool, "descending must be true or false")
    return Kind("int32", kinds[0].shape)


def _argsort(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
    axis, last = params["axis"], kinds[0].shape[params["axis"]] - 1
    if params["descending"]:  # equal elements keep their order
        return lambda x: np.flip(last - np.argsort(np.flip(x, axis), axis, kind="stable"), axis).astype(np.int32)
    return lambda x: np.argsort(x, axis, kind="stable").astype(np.int32)


def _matmul_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    left, right = kinds
    need(left.type == right.type != "bool", "it takes numbers of one type")
    a, b = left.shape, right.shape
    need(1 <= len(a) <= 3 and 1 <= len(b) <= 3, "it takes vectors, matrices or rows of matrices")
    need((len(a) == 3) == (len(b) == 3) and (len(a) < 3 or a[0] == b[0]), "its rows of matrices do not fit")
    need(a[-1] == (b[0] if len(b) == 1 else b[-2]), f"shapes {list(a)} and {list(b)} do not fit")
    return make_kind(left.type, (*a[:-1], *(b[-1:] if len(b) > 1 else ())))


def _matmul(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any, Any], Any]:
    left, right = (kind.shape for kind in kinds)
    if len(left) == 3:
        return np.matmul
    if len(left) == len(right) == 2 and left[0] * left[1] * right[1] > AT_ONCE:
        return _in_blocks(left, right)
    return np.dot


def _in_blocks(left: tuple[int, ...], right: tuple[int, ...]) -> Callable[[Any, Any], Any]:
    """Blocks of rows, each too small for BLAS to start threads: waiting for those may take longer than the product."""
    fitting = (n for n in range(1, left[0] + 1) if left[0] % n == 0 and n * left[1] * right[1] <= AT_ONCE)
    rows = max(fitting, default=1)
    shape = left[0] // rows, rows, left[1]
    return lambda x, y: np.matmul(x.reshape(shape), y).reshape(left[0], right[1])


def _take_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    operand, index = kinds
    axis = _axis(operand, params)
    need(index.type == "int32", "its positions must be int32")
    need(operand.shape[axis] > 0 or index.size == 0, "nothing can be taken from an empty axis")
    return make_kind(operand.type, (*operand.shape[:axis], *index.shape, *operand.shape[axis + 1 :]))


def _take(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any, Any], Any]:
    axis = params["axis"]
    return lambda x, index: np.take(x, index, axis, mode="clip")


def _put_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    operand, index, updates = kinds
    need(params["how"] in UPDATES, f"how must be one of {', '.join(UPDATES)}")
    need(len(operand.shape) == len(index.shape) == 1 and index.shape == updates.shape, "it takes three lists")
    need(index.type == "int32" and updates.type == operand.type, "its types do not fit")
    return operand


def _put(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any, Any, Any], Any]:
    function, size = UPDATES[params["how"]], out.size

    def put(x: Any, index: Any, updates: Any) -> Any:
        result = np.array(x)
        inside = (index >= 0) & (index < size)  # others are dropped
        if not inside.all():
            index, updates = index[inside], updates[inside]
        if function is None:
            result[index] = updates
        else:
            function.at(result, index, updates)
        return result

    return put


def _window_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    operand, start = kinds
    axis = _axis(operand, params)
    need(start == Kind("int32", ()), "its start must be one int32")
    size = whole(params["size"], 0, min(operand.shape[axis], MOST_ELEMENTS), "size")
    return Kind(operand.type, (*operand.shape[:axis], size, *operand.shape[axis + 1 :]))


def _window(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any, Any], Any]:
    axis, size = params["axis"], params["size"]
    last, before = kinds[0].shape[axis] - size, (slice(None),) * axis

    def window(x: Any, start: Any) -> Any:
        first = min(max(int(start), 0), last)
        return x[(*before, slice(first, first + size))]

    return window


NONE, AXES, AXIS = frozenset[str](), frozenset({"axes"}), frozenset({"axis"})
OPERATIONS: dict[str, Operation] = {
    **{name: Operation(1, AXES, _reduction_kind, _reduce(REDUCTIONS[name])) for name in ("sum", "prod")},
    **{f"reduce_{name}": Operation(1, AXES, _extreme_kind, _reduce(REDUCTIONS[name])) for name in ("max", "min")},
    **{name: Operation(1, AXES, _logical_kind, _reduce(function)) for name, function in LOGICAL.items()},
    **{name: Operation(1, AXIS | {"reverse"}, _running_kind, _running(function)) for name, function in RUNNING.items()},
    "argmax": Operation(1, AXIS, _best_kind, _best(np.argmax)),
    "argmin": Operation(1, AXIS, _best_kind, _best(np.argmin)),
    "sort": Operation(1, AXIS, _sort_kind, _sort),
    "argsort": Operation(1, AXIS | {"descending"}, _argsort_kind, _argsort),
    "matmul": Operation(2, NONE, _matmul_kind, _matmul),
    "take": Operation(2, AXIS, _take_kind, _take),
    "put": Operation(3, frozenset({"how"}), _put_kind, _put),
    "window": Operation(2, AXIS | {"size"}, _window_kind, _window),
}
