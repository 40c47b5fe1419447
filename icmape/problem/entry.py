"""Problems by name. Each problem has an entry that names its parts; other packages register theirs as entry points.

    [project.entry-points."icmape.problems"]
    mine = "my_package.entry:ENTRY"

Parts are named as `module:attribute` and imported on demand: training needs no drawing.
"""

import importlib
import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from icmape.errors import UserError
from icmape.imports import load_object
from icmape.problem.contract import Problem

GROUP = "icmape.problems"
OWN = "icmape.zoo"  # imported by name: the core does not depend on it


@dataclass(frozen=True)
class Entry:
    """A problem and the parts that belong to it."""

    name: str
    """Its name in files; no hyphen."""
    problem: type[Problem]
    presets: str = ""
    """A folder of presets, as a package: one TOML file each (`learning/presets.py`)."""
    baselines: str = ""
    """`module:attribute` of its rules by name (`baselines/rules.py`)."""
    policies: str = ""
    """`module:attribute` of its policies without learning, by name (`play/named_policies.py`)."""
    sweeps: str = ""
    """`module:attribute` of the priors of its robustness sweeps (`evaluation/robustness.py`)."""
    drawing: str = ""
    """`module:attribute` of the class that draws its episodes (`plot/drawing.py`)."""
    commands: str = ""
    """`module:attribute` of additional commands of the command line, by name."""

    def part(self, name: str, default: Any) -> Any:
        """Import a part, or return the default if the entry has none."""
        path = getattr(self, name)
        return load_object(path, f"the {name} of {self.name}") if path else default


@cache
def entries() -> dict[str, Entry]:
    """All installed problems by name; those of icmape come first."""
    by_name: dict[str, Entry] = {}
    installed = (_installed(point) for point in entry_points(group=GROUP))
    for entry in (*importlib.import_module(OWN).ENTRIES, *installed):
        if not isinstance(entry, Entry):
            raise UserError(f"an entry point of {GROUP} gives {type(entry).__name__}; expected an icmape.Entry")
        if by_name.setdefault(entry.name, entry) != entry:
            raise UserError(f"two problems are called {entry.name}: {by_name[entry.name].problem} and {entry.problem}")
    return by_name


def _installed(point: Any) -> Any:
    try:
        return point.load()
    except Exception as error:  # another package may raise anything: report it
        raise UserError(f"the entry point {point.name} = {point.value} of {GROUP} cannot be loaded: {error}") from error


def import_from_here() -> None:
    """Let the user's own modules be imported from the current folder, after all that is installed.

    Entry points are looked up before, so that none can come from that folder.
    """
    entries()
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)


def problem_classes() -> dict[str, type[Problem]]:
    """Problem classes by name. Files may name these; the caller must pass any other class."""
    return {name: entry.problem for name, entry in entries().items()}


def problem_name(problem: type[Problem]) -> str:
    """The name of a problem class: that of its entry, else module:Class."""
    for name, registered in problem_classes().items():
        if problem is registered:
            return name
    return f"{problem.__module__}:{problem.__qualname__}"


def entry_of(problem: type[Problem]) -> Entry | None:
    """The entry of a problem class, or of its nearest base class that has one."""
    by_class = {entry.problem: entry for entry in entries().values()}
    return next((by_class[base] for base in problem.__mro__ if base in by_class), None)
