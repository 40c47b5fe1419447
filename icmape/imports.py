"""Import the user's objects by `module:name`.

Code is imported if the user names it: on the command line, or in a call. A file that names code imports nothing, unless
the user names the same.
"""

import importlib
from collections.abc import Collection, Sequence
from typing import Any

from icmape.errors import UserError


def is_path(name: str) -> bool:
    """Whether a name has the form `module:name`."""
    module, _, attribute = name.partition(":")
    return bool(module) and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))


FLAGS = ("--problem", "--teacher.policy", "--network.encoder", "--baseline", "--baselines")
"""Flags of commands whose values may name code."""


def named_code(words: Sequence[str]) -> frozenset[str]:
    """All `module:name` that the flags of a command line name."""
    return frozenset(name for names in named_by_flag(words).values() for name in names)


def named_by_flag(words: Sequence[str]) -> dict[str, list[str]]:
    """The same by flag. A flag may have several values, and may be repeated."""
    named: dict[str, list[str]] = {}
    flag = ""
    for word in words:
        value = word
        if word.startswith("--"):
            flag, _, value = word.partition("=")
        if flag in FLAGS and is_path(value):
            named.setdefault(flag, []).append(value)
    return named


def check_named(path: str, named: Collection[str], source: str, flag: str) -> None:
    """Refuse code that only a file names."""
    if path not in named:
        raise UserError(f"{source} is {path}, which is not part of icmape: to run this code, add {flag} {path}")


def load_object(path: str, option: str) -> Any:
    """Import `module:name`. Errors name the `option` that held it."""
    module_name, _, name = path.partition(":")
    if not name or not module_name:
        raise UserError(f"{option} {path}: expected module:Class, for example my_package.my_module:MyClass")
    try:
        return getattr(importlib.import_module(module_name), name)
    except (ImportError, TypeError, ValueError) as error:
        raise UserError(
            f"{option} {path}: cannot import {module_name} ({error}); is it installed, on PYTHONPATH or in this folder?"
        ) from error
    except AttributeError as error:
        raise UserError(f"{option} {path}: {module_name} has no class {name}") from error


def call_own(path: str, option: str, *arguments: Any) -> Any:
    """Import `module:name` and call it with these arguments; an object that is not callable is returned."""
    loaded = load_object(path, option)
    if not callable(loaded):
        return loaded
    try:
        return loaded(*arguments)
    except UserError:
        raise
    except Exception as error:  # the user's code may raise anything: report it
        words = ", ".join(type(argument).__name__ for argument in arguments)
        raise UserError(
            f"{option} {path}: calling it with ({words}) failed: {type(error).__name__}: {error}"
        ) from error
