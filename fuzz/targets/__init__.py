"""All targets. Another one is a function that makes a `Target`, and a line here."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fuzz.cases import Target
from fuzz.targets import archives, caches, commands, configurations, evaluations, exports, readings, runs, team_files


class Entry(NamedTuple):
    """A target by name."""

    make: Callable[[Path], Target]
    """Makes the target; the folder is its own."""
    share: int
    """Inputs of a hundred: the cheap ones have many."""


TARGETS: dict[str, Entry] = {
    "team files": Entry(team_files.make, 15),
    "exports": Entry(exports.make, 20),
    "archives": Entry(archives.make, 10),
    "readings": Entry(readings.make, 15),
    "runs": Entry(runs.make, 10),
    "command lines": Entry(commands.make, 8),
    "configurations": Entry(configurations.make, 15),
    "evaluations": Entry(evaluations.make, 10),
    "cached episodes": Entry(caches.make_episodes, 8),
    "cached evaluations": Entry(caches.make_evaluations, 5),
}
