"""Problems by name. A problem comes with an entry that names its parts; other packages add theirs by entry points.

    [project.entry-points."icmape.problems"]
    mine = "my_package.entry:ENTRY"

Parts are named as `module:attribute` and imported when somebody asks for them: training needs no drawing.
"""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from icmape.errors import UserError, nearest
from icmape.imports import load_object
from icmape.problem.contract import Problem

GROUP = "icmape.problems"
OWN = "icmape.zoo"  # imported by name: nothing in the core knows what is in it


@dataclass(frozen=True)
class Entry:
    """All that there is about one problem."""

    name: str
    """What files call it; no hyphen."""
    problem: type[Problem]
    presets: str = ""
    """A folder of presets, as a package: one TOML file each (`learning/presets.py`)."""
    baselines: str = ""
    """`module:attribute` of its rules by name (`baselines/rules.py`)."""
    policies: str = ""
    """`module:attribute` of policies by name that it makes without learning (`play/named_policies.py`)."""
    sweeps: str = ""
    """`module:attribute` of the priors that its teams are tried under (`evaluation/robustness.py`)."""
    drawing: str = ""
    """`module:attribute` of the class that draws its episodes (`plot/drawing.py`)."""
    commands: str = ""
    """`module:attribute` of further commands of the command line by name."""

    def part(self, name: str, default: Any) -> Any:
        """A part that is named by `module:attribute`."""
        path = getattr(self, name)
        return load_object(path, f"the {name} of {self.name}") if path else default


@cache
def entries() -> dict[str, Entry]:
    """Every problem that is installed, by name: the package's own first."""
    found: dict[str, Entry] = {}
    installed = (_installed(point) for point in entry_points(group=GROUP))
    for entry in (*importlib.import_module(OWN).ENTRIES, *installed):
        if not isinstance(entry, Entry):
            raise UserError(f"an entry point of {GROUP} gives {type(entry).__name__}; expected an icmape.Entry")
        if found.setdefault(entry.name, entry) != entry:
            raise UserError(f"two problems are called {entry.name}: {found[entry.name].problem} and {entry.problem}")
    return found


def _installed(point: Any) -> Any:
    try:
        return point.load()
    except Exception as error:  # somebody else's package may fail in any way: name it
        raise UserError(f"the entry point {point.name} = {point.value} of {GROUP} cannot be loaded: {error}") from error


def problem_classes() -> dict[str, type[Problem]]:
    """Classes that a file may name; any other one must be given by the caller."""
    return {name: entry.problem for name, entry in entries().items()}


def problem_name(problem: type[Problem]) -> str:
    """The name of a problem's class: short where it has an entry, module:Class for any other."""
    for name, known in problem_classes().items():
        if problem is known:
            return name
    return f"{problem.__module__}:{problem.__qualname__}"


def entry_of(problem: type[Problem]) -> Entry | None:
    """The entry of a problem's class, or of the nearest of its base classes that has one."""
    known = {entry.problem: entry for entry in entries().values()}
    return next((known[base] for base in problem.__mro__ if base in known), None)


def only(name: str, known: Iterable[str], what: str) -> str:
    """The name, if it is known; else an error with the nearest ones."""
    if name not in known:
        raise UserError(f"unknown {what} {name!r}: {nearest(name, known)}")
    return name
