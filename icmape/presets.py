"""Every experiment, by name."""

from dataclasses import dataclass
from typing import Any

from icmape.errors import UserError, nearest
from icmape.learning.config import Config, override
from icmape.problems import Bandit, Problem

PROBLEMS: dict[str, type[Problem]] = {"bandit": Bandit}
"""The problems of the package: a file may name these; any other class must be given by the caller."""


@dataclass(frozen=True)
class Preset:
    """A problem and the settings that suit it."""

    summary: str
    problem: type[Problem]
    arguments: dict[str, Any]
    settings: dict[str, Any]

    def build(self) -> Problem:
        """The problem."""
        return self.problem(**self.arguments)

    def config(self) -> Config:
        """The settings."""
        return override(Config(), self.settings)


LARGE_BANDIT = {
    "iterations": 8000,
    "worlds": 128,
    "batch": 128,
    "replay": 16384,
    "validate_every": 100,
    "dual.rate": 2e-3,
}

PRESETS: dict[str, Preset] = {
    "bandit-quick": Preset(
        "capacities of 2 arms, 3 players, T = 20: learns in minutes on two cores",
        Bandit,
        {"arms": 2, "players": 3, "horizon": 20},
        {"iterations": 1800, "network.width": 32, "replay": 2048},
    ),
    "bandit-a3p5": Preset(
        "capacities of 3 arms, 5 players, T = 50: the paper's A3P5",
        Bandit,
        {"arms": 3, "players": 5, "horizon": 50},
        LARGE_BANDIT,
    ),
    "bandit-a5p3": Preset(
        "capacities of 5 arms, 3 players, T = 50: the paper's A5P3",
        Bandit,
        {"arms": 5, "players": 3, "horizon": 50},
        LARGE_BANDIT,
    ),
}


def preset(name: str) -> Preset:
    """A preset by name."""
    if name not in PRESETS:
        raise UserError(f"unknown preset {name!r}: {nearest(name, PRESETS)}")
    return PRESETS[name]


def problem_name(problem: type[Problem]) -> str:
    """The name of a problem's class: short for the package's own, module:Class for any other."""
    for name, known in PROBLEMS.items():
        if problem is known:
            return name
    return f"{problem.__module__}:{problem.__qualname__}"
