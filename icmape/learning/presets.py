"""Presets: a problem with recommended settings, one TOML file each.

summary = "capacities of 2 arms, 3 players, T = 20"
algorithm = "ppo"            # the one that does best here

[arguments]                  # of the problem
arms = 2

[all]                        # settings for every algorithm; then those of a family, then of one algorithm
[on_policy]                  # ppo, guided
[off_policy]                 # td3, td3-paper, vdn, qmix, iql, dqn
[frozen]                     # random, and policies of the problem that do not learn
[td3-paper]
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, cast

from icmape.errors import UserError, known_name
from icmape.learning.config import FAMILIES, Config, algorithms, with_algorithm
from icmape.problem import Problem
from icmape.problem.entry import entries
from icmape.problem.spec import check_changes
from icmape.settings import override

PLACES = ("all", *FAMILIES)  # tables of settings besides those of single algorithms


@dataclass(frozen=True)
class Preset:
    """A problem with recommended settings."""

    name: str
    summary: str
    problem: type[Problem]
    arguments: dict[str, Any]
    settings: dict[str, dict[str, Any]]  # by place
    algorithm: str  # the default: the best one here

    def build(self, **changes: Any) -> Problem:
        """The problem, with some arguments changed."""
        return self.problem(**{**self.arguments, **changes})

    def config(self, algorithm: str | None = None) -> Config:
        """The settings for an algorithm by name (default: the best one)."""
        algorithm = algorithm or self.algorithm
        config = with_algorithm(Config(), algorithm)
        for place in ("all", algorithms()[known_name(algorithm, algorithms(), "algorithm")].family, algorithm):
            config = cast(Config, override(config, self.settings.get(place, {})))
        return config


@cache
def presets() -> dict[str, Preset]:
    """The presets of all installed problems."""
    by_name = {}
    for entry in entries().values():
        folder = resources.files(entry.presets) if entry.presets else None
        files = sorted(folder.iterdir(), key=lambda f: f.name) if folder is not None else []
        for file in files:
            if file.name.endswith(".toml"):
                name = file.name.removesuffix(".toml")
                if name in by_name:
                    raise UserError(f"two problems have a preset {name}: the second is {entry.name}")
                by_name[name] = _read(name, entry.problem, file.read_text())
    return by_name


def _read(name: str, problem: type[Problem], text: str) -> Preset:
    try:
        content = tomllib.loads(text)
        summary, algorithm = content.pop("summary"), content.pop("algorithm")
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise UserError(f"the preset {name} needs TOML with summary and algorithm: {error}") from error
    arguments = dict(check_changes(problem, content.pop("arguments", {})))
    for place in content:
        known_name(place, (*PLACES, *algorithms()), f"table of the preset {name}:")
    return Preset(name, summary, problem, arguments, content, algorithm)


def preset(name: str) -> Preset:
    """A preset by name."""
    return presets()[known_name(name, presets(), "preset")]
