"""Types of a problem's arguments in files and on command lines, from the annotations of its constructor."""

import collections.abc
import inspect
import math
import numbers
import types
import typing
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from icmape.errors import UserError, nearest

WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", type(None): "none"}


def check_arguments(kind: type, name: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values, if they name arguments of a problem class and have their types; `name` is the class in words."""
    parameters, hints = inspect.signature(kind).parameters, {}
    with suppress(Exception):  # annotations that cannot be resolved are not compared
        hints = typing.get_type_hints(getattr(kind, "__init__"))  # noqa: B009 (mypy)
    for argument, value in values.items():
        if argument not in parameters:
            raise UserError(f"{name} has no argument {argument!r}: {nearest(argument, parameters)}")
        if argument in hints and not _fits(value, hints[argument]):
            raise UserError(f"{argument} of {name} must be {_in_words(hints[argument])}; given {value!r:.80}")
    return values


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has an annotated type; types that are not listed here fit."""
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, option) for option in options)
    if origin is Literal:
        return any(value == option and type(value) is type(option) for option in options)
    if origin is collections.abc.Sequence:
        if isinstance(value, str):
            return bool(options == (str,))  # a single path or name
        return hasattr(value, "__len__") and not isinstance(value, Mapping) and all(_fits(v, options[0]) for v in value)
    if hint is float:
        return _is_number(value) and math.isfinite(value)
    if hint is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return isinstance(value, hint) if hint in WORDS else True


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | str | bytes) or getattr(value, "shape", ()) != ():
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _in_words(hint: Any) -> str:
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(map(_in_words, options))
    if origin is Literal:
        return "one of " + ", ".join(map(str, options))
    if origin is collections.abc.Sequence:
        return f"a list, each entry {_in_words(options[0])}"
    return WORDS.get(hint, getattr(hint, "__name__", str(hint)))
