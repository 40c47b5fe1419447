"""Packages of optional extras: a clear error where one is missing."""

import importlib
import importlib.util
from typing import Any

from icmape.errors import UserError


def extra_module(module: str, extra: str, purpose: str) -> Any:
    """Import a module of this package that needs the packages of an extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "icmape"):
            raise
        raise _missing(missing, extra, purpose) from error


def missing_extra(package: str, extra: str, purpose: str) -> None:
    """Raise `UserError` if a package is not installed; nothing is imported."""
    try:
        found = importlib.util.find_spec(package) is not None
    except ValueError:  # what sys.modules holds under this name is no module
        found = False
    if not found:
        raise _missing(package, extra, purpose)


def _missing(package: str, extra: str, purpose: str) -> UserError:
    return UserError(f"{purpose} needs packages that are not installed ({package}): pip install 'icmape[{extra}]'")
