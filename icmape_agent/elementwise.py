"""Operations on elements: arithmetic, comparisons, functions, conversions. Operands are broadcast as in NumPy."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from icmape_agent.kinds import Kind, Operation, Params, broadcast_shape, make_kind, need


def _logistic(x: Any) -> Any:
    return np.reciprocal(np.add(np.exp(np.negative(x)), x.dtype.type(1)))


def _each(function: Callable[[float], float]) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        x = np.asarray(x)
        values = np.fromiter((function(v) for v in x.ravel().tolist()), np.float64, x.size)
        return values.astype(x.dtype).reshape(x.shape)

    return apply


def _divide_whole(x: Any, y: Any) -> Any:
    """Rounded towards zero."""
    return np.floor_divide(np.subtract(x, np.fmod(x, y)), y)


def _shift_right_logical(x: Any, y: Any) -> Any:
    x = np.asarray(x)
    unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
    return np.right_shift(x.view(unsigned), np.asarray(y).view(unsigned)).view(x.dtype)


FLOAT_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in ("floor", "ceil", "exp", "exp2", "expm1", "log", "log1p", "sqrt", "cbrt")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "round": np.rint,  # halves to the even neighbour
    "logistic": _logistic,
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
}
NUMBER_FUNCTIONS: dict[str, Callable[[Any], Any]] = {"neg": np.negative, "abs": np.abs, "sign": np.sign}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rem": np.fmod,
    "max": np.maximum,
    "min": np.minimum,
}
FLOAT_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"pow": np.power, "atan2": np.arctan2}
BITS: dict[str, Callable[[Any, Any], Any]] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
SHIFTS: dict[str, Callable[[Any, Any], Any]] = {
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "shift_right_logical": _shift_right_logical,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _float_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    need(kinds[0].is_float, "it takes floats")
    return kinds[0]


def _number_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    need(kinds[0].type != "bool", "it takes numbers")
    return kinds[0]


def _finite_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    return Kind("bool", _float_kind(kinds, params).shape)


def _not_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    need(not kinds[0].is_float, "it takes whole numbers or bools")
    return kinds[0]


def _same(kinds: Sequence[Kind]) -> Kind:
    need(len({kind.type for kind in kinds}) == 1, "its operands differ in type")
    return make_kind(kinds[0].type, broadcast_shape([kind.shape for kind in kinds]))


def _arithmetic_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    return _same(kinds)


def _number_arithmetic_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    return _number_kind([_same(kinds)], params)


def _float_arithmetic_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    return _float_kind([_same(kinds)], params)


def _bits_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    return _not_kind([_same(kinds)], params)


def _shift_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    return _number_kind([_bits_kind(kinds, params)], params)


def _comparison_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    return Kind("bool", _same(kinds).shape)


def _select_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    need(kinds[0].type == "bool", "its condition must be of bools")
    return make_kind(_same(kinds[1:]).type, broadcast_shape([kind.shape for kind in kinds]))


def _convert_kind(kinds: Sequence[Kind], params: Params) -> Kind:
    return make_kind(params["type"], kinds[0].shape)


def _convert(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
    target = np.dtype(out.type)
    if kinds[0].is_float and target.kind in "iu":
        limits = np.iinfo(target)

        def saturate(x: Any) -> Any:  # as XLA does; NumPy leaves it undefined
            return np.clip(np.nan_to_num(np.asarray(x, np.float64)), limits.min, limits.max).astype(target)

        return saturate
    return lambda x: x.astype(target)


def _invert(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any], Any]:
    return np.logical_not if out.type == "bool" else np.bitwise_not


def _divide(kinds: Sequence[Kind], params: Params, out: Kind) -> Callable[[Any, Any], Any]:
    return np.divide if out.is_float else _divide_whole


def _always(function: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    return lambda kinds, params, out: function


def _table(functions: dict[str, Callable[..., Any]], inputs: int, kind: Callable) -> dict[str, Operation]:
    return {name: Operation(inputs, frozenset(), kind, _always(call)) for name, call in functions.items()}


OPERATIONS: dict[str, Operation] = {
    **_table(FLOAT_FUNCTIONS, 1, _float_kind),
    **_table(NUMBER_FUNCTIONS, 1, _number_kind),
    **_table({name: call for name, call in ARITHMETIC.items() if name in ("max", "min")}, 2, _arithmetic_kind),
    **_table(
        {name: call for name, call in ARITHMETIC.items() if name not in ("max", "min")}, 2, _number_arithmetic_kind
    ),
    **_table(FLOAT_ARITHMETIC, 2, _float_arithmetic_kind),
    **_table(BITS, 2, _bits_kind),
    **_table(SHIFTS, 2, _shift_kind),
    **_table(COMPARISONS, 2, _comparison_kind),
    "div": Operation(2, frozenset(), _number_arithmetic_kind, _divide),
    "not": Operation(1, frozenset(), _not_kind, _invert),
    "is_finite": Operation(1, frozenset(), _finite_kind, _always(np.isfinite)),
    "select": Operation(3, frozenset(), _select_kind, _always(np.where)),
    "convert": Operation(1, frozenset({"type"}), _convert_kind, _convert),
}
