"""Checks messages and entries against `session.schema.json`, with the few words of JSON Schema that it uses."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from icmape_agent.session.refusal import Refusal

SCHEMA_FILE = Path(__file__).parent / "session.schema.json"
MOST_DEPTH = 16  # of nested lists and objects
LARGEST = 2**53 - 1  # every JSON reader keeps whole numbers up to here
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}


@cache
def schema() -> dict[str, Any]:
    """The content of the schema file."""
    loaded: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return loaded


def check(value: Any, name: str, what: str) -> None:
    """Raise `Refusal` if a value does not fit a definition of the schema; `what` names the value in the sentence."""
    if problem := misfit(value, schema()["$defs"][name], what):
        raise Refusal("malformed", problem)


def check_message(message: Any) -> None:
    """Raise `Refusal` if a value is no message."""
    kinds = [part["$ref"].rpartition("/")[2] for part in schema()["$defs"]["message"]["anyOf"]]
    kind = message.get("type") if isinstance(message, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        given = f"type {short(kind)}" if isinstance(message, dict) and "type" in message else short(message)
        raise Refusal("malformed", f'a message is an object with "type" one of {", ".join(kinds)}; given {given}')
    check_plain(message)
    check(message, kind, f"the message {kind!r}")


def check_plain(value: Any, depth: int = 0) -> None:
    """Raise `Refusal` for what JSON cannot hold everywhere: numbers that are not finite or very large, deep nesting."""
    if depth > MOST_DEPTH:
        raise Refusal("malformed", f"lists and objects may be nested {MOST_DEPTH} deep; the message is nested deeper")
    if isinstance(value, float) and not math.isfinite(value):
        raise Refusal("malformed", f"numbers must be finite; given {value}")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise Refusal("malformed", f"whole numbers may have up to 53 bits; given one of {value.bit_length()} bits")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise Refusal("malformed", f"names in an object are text; given {short(key)}")
            check_plain(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            check_plain(item, depth + 1)
    elif not isinstance(value, str | int | float | None):
        raise Refusal("malformed", f"a message holds JSON values only; given {short(value)}")
    elif isinstance(value, str) and not value.isprintable() and any("\ud800" <= c <= "\udfff" for c in value):
        raise Refusal("malformed", "texts must be valid Unicode; given half of a surrogate pair")


def misfit(value: Any, rule: dict[str, Any], what: str) -> str | None:
    """Why a value does not fit a rule of the schema, in one sentence; None if it does."""
    if "$ref" in rule:
        return misfit(value, schema()["$defs"][rule["$ref"].rpartition("/")[2]], what)
    if "anyOf" in rule:
        problems = [misfit(value, option, what) for option in rule["anyOf"]]
        return None if None in problems else problems[-1]
    allowed = [rule["const"]] if "const" in rule else rule.get("enum")
    if allowed is not None and not any(type(value) is type(option) and value == option for option in allowed):
        return f"{what} must be {' or '.join(map(json.dumps, allowed))}; given {short(value)}"
    if "type" in rule and not _is_of_type(value, rule["type"]):
        kinds = [rule["type"]] if isinstance(rule["type"], str) else rule["type"]
        return f"{what} must be of type {' or '.join(kinds)}; given {short(value)}"
    return _outside(value, rule, what) or _parts_misfit(value, rule, what)


def _is_of_type(value: Any, names: str | list[str]) -> bool:
    for name in [names] if isinstance(names, str) else names:
        if isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool)):
            return True
    return False


def _outside(value: Any, rule: dict[str, Any], what: str) -> str | None:
    low, high = rule.get("minimum", -math.inf), rule.get("maximum", math.inf)
    if isinstance(value, int | float) and not low <= value <= high:
        return f"{what} must lie in {low}..{high}; given {short(value)}"
    short_of, most = rule.get("minLength", 0), rule.get("maxLength", math.inf)
    if isinstance(value, str) and not short_of <= len(value) <= most:
        return f"{what} must have {short_of} to {most} characters; given {len(value)}"
    return None


def _parts_misfit(value: Any, rule: dict[str, Any], what: str) -> str | None:
    if isinstance(value, list) and "items" in rule:
        found = (misfit(item, rule["items"], f"item {i} of {what}") for i, item in enumerate(value))
        return next(filter(None, found), None)
    if not isinstance(value, dict) or "properties" not in rule:
        return None
    properties = rule["properties"]
    if lacking := [name for name in rule.get("required", ()) if name not in value]:
        return f"{what} needs {json.dumps(lacking[0])}"
    if unknown := [name for name in value if name not in properties]:
        return f"{what} has no {short(unknown[0])}; known: {', '.join(properties)}"
    found = (misfit(item, properties[name], f"{json.dumps(name)} of {what}") for name, item in value.items())
    return next(filter(None, found), None)


def short(value: Any, most: int = 80) -> str:
    """A value as JSON, cut if it is long."""
    try:
        text = json.dumps(value, default=lambda x: f"<{type(x).__name__}>")
    except (ValueError, TypeError, RecursionError):
        text = f"<{type(value).__name__}>"
    return text if len(text) <= most else f"{text[: most - 1]}…"
