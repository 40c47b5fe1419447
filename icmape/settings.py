"""Settings as frozen dataclasses. Unknown names are errors in Python, in files and on the command line."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

from icmape.errors import UserError, nearest


def override(settings: Any, changes: Mapping[str, Any], section: str = "") -> Any:
    """A copy with changed settings: nested mappings, or names with dots ("network.hidden_size").

    Where a setting is one of several dataclasses, "kind" selects one by its class attribute `kind`.
    """
    for name, value in changes.items():
        head, _, tail = name.partition(".")
        if head not in {field.name for field in dataclasses.fields(settings)}:
            raise UserError(unknown(type(settings), name, section))
        if tail:
            value = {tail: value}
        current, hint = getattr(settings, head), typing.get_type_hints(type(settings))[head]
        if dataclasses.is_dataclass(current) and isinstance(value, Mapping):
            if "kind" in value and len(kinds_of(hint)) > 1:
                current, value = _of_kind(section + head, current, kinds_of(hint), **value)
            value = override(current, value, f"{section}{head}.")
        else:
            value = _coerce(section + name, value, hint)
        settings = dataclasses.replace(settings, **{head: value})
    return settings


def unknown(settings: type, name: str, section: str = "") -> str:
    """The error for an unknown setting: its new name if it was renamed (`RENAMED`), else the closest names."""
    head = name.partition(".")[0]
    renamed: Mapping[str, str] = getattr(settings, "RENAMED", {})
    if new := renamed.get(name) or renamed.get(head):
        return f"the setting {section + name!r} is called {section + new!r} now"
    return f"unknown setting {section + name!r}: {nearest(head, (f.name for f in dataclasses.fields(settings)))}"


def kinds_of(hint: Any) -> dict[str, type]:
    """The dataclasses that a setting may be, by kind."""
    return {option.kind: option for option in typing.get_args(hint) if hasattr(option, "kind")}


def _of_kind(name: str, current: Any, kinds: dict[str, type], kind: Any, **changes: Any) -> tuple[Any, dict[str, Any]]:
    """The settings to change: the current ones if they are of this kind, else the defaults of the kind."""
    if not isinstance(kind, str) or kind not in kinds:
        raise UserError(f"unknown {name}.kind {kind!r}: {nearest(str(kind), kinds)}")
    return current if type(current) is kinds[kind] else kinds[kind](), changes


def to_dict(settings: Any) -> dict[str, Any]:
    """Settings as plain values for JSON, with the kind of each dataclass that has one."""

    def plain(value: Any) -> Any:
        if not dataclasses.is_dataclass(value) or isinstance(value, type):
            return value
        kind = {"kind": value.kind} if hasattr(value, "kind") else {}
        return kind | {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}

    values: dict[str, Any] = plain(settings)
    return values


def _coerce(name: str, value: Any, kind: Any) -> Any:
    """Check a value against its annotation. Lists become tuples and ints become floats where annotated so."""
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if value in options:
            return value
        raise UserError(f"{name} must be one of {', '.join(map(str, options))}; given {value!r}")
    if origin is tuple:
        items = (value,) if isinstance(value, int | float) else value
        if isinstance(items, str) or not hasattr(items, "__iter__"):
            raise UserError(f"{name} must be a list of {options[0].__name__}; given {value!r}")
        return tuple(_coerce(name, item, options[0]) for item in items)
    if origin is types.UnionType and all(map(dataclasses.is_dataclass, options)):
        if isinstance(value, options):
            return value
        raise UserError(
            f"{name} must be settings of one kind, such as {{'kind': {next(iter(kinds_of(kind)))!r}}}; given {value!r}"
        )
    if origin is types.UnionType:
        return None if value is None else _coerce(name, value, options[0])
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1023:
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UserError(f"{name} must be {kind.__name__}; given {value!r}")
    return value
