"""Every experiment, by name."""

from dataclasses import dataclass
from typing import Any

from icmape.errors import UserError, nearest
from icmape.learning.config import ALGORITHMS, DEFAULT_ALGORITHM, Config, override, with_algorithm
from icmape.problems import Bandit, Hotspot, Problem, Signal

PROBLEMS: dict[str, type[Problem]] = {"bandit": Bandit, "signal": Signal, "hotspot": Hotspot}
"""The problems of the package: a file may name these; any other class must be given by the caller."""


@dataclass(frozen=True)
class Preset:
    """A problem and the settings that suit it."""

    summary: str
    problem: type[Problem]
    arguments: dict[str, Any]
    settings: dict[str, Any]  # for every algorithm
    tuned: dict[str, dict[str, Any]]  # for some of them
    algorithm: str = DEFAULT_ALGORITHM  # the one that does best here

    def build(self, **changes: Any) -> Problem:
        """The problem, with some arguments changed."""
        return self.problem(**{**self.arguments, **changes})

    def config(self, algorithm: str | None = None) -> Config:
        """The settings for an algorithm, by name; by default for the one that does best."""
        algorithm = algorithm or self.algorithm
        config = override(with_algorithm(Config(), algorithm), self.settings)
        return override(config, self.tuned.get(algorithm, {}))


Settings = dict[str, Any]
LARGE_PLAN: Settings = {"plan.iterations": 600, "plan.worlds": 1024, "plan.entropy": 2e-3}
LARGE_BANDIT: Settings = {"replay": 16384, "validation_worlds": 10240, "inference_rate": 3e-3}
LARGE_OFF_POLICY: Settings = {  # as many worlds as PPO gets, and networks as wide
    **LARGE_PLAN,
    "iterations": 1200,
    "worlds": 1024,
    "batch": 512,
    "warmup": 2048,
    "validate_every": 50,
    "polish": 0.15,
    "network.width": 128,
}
LARGE_FROZEN: Settings = {**LARGE_OFF_POLICY, "plan.iterations": 0, "iterations": 400, "polish": 0.0}
LARGE_PPO: Settings = {
    **LARGE_PLAN,
    "iterations": 600,
    "worlds": 2048,
    "replay": 2048,
    "batch": 512,
    "warmup": 512,
    "validate_every": 25,
    "polish": 0.1,
    "network.width": 128,
    "actor_rate": 1e-3,
    "critic_rate": 1e-3,
}


def _large_bandit(length: int, own: Settings) -> dict[str, Settings]:
    """What each algorithm gets on a large bandit whose plans are at most so long, and PPO from nothing besides."""
    first: Settings = {"plan.rounds": length}
    return {name: LARGE_OFF_POLICY | first for name in ALGORITHMS} | {
        "random": LARGE_FROZEN,
        "td3-paper": {**LARGE_OFF_POLICY, "plan.iterations": 0, "polish": 0.0},  # to the letter
        "ppo": LARGE_PPO | first | own,
        "guided": {**LARGE_PPO, **first, "guide.policy": "local-adaptive", "guide.until": 0.3},
    }


A3P5_PPO: Settings = {
    "members": 4,
    "iterations": 450,
    "validate_every": 50,
    "plan.follow": 0.0,
    "algorithm.trace": 0.5,
    "algorithm.stop_temperature": 0.1,
    "algorithm.early_ends": 0.0,
}
A5P3_PPO: Settings = {"members": 2, "iterations": 400, "validate_every": 50, "algorithm.early_ends": 1.0}
QUICK_OFF_POLICY = {"iterations": 1300}
QUICK_PPO: Settings = {"iterations": 180, "validate_every": 20}
QUICK_GUIDED: Settings = {**QUICK_PPO, "guide.policy": "local-adaptive"}
QUICK_TUNED: dict[str, Settings] = {name: QUICK_OFF_POLICY for name in ALGORITHMS} | {
    "iql": {**QUICK_OFF_POLICY, "algorithm.polyak": 0.05},
    "ppo": QUICK_PPO,
    "guided": QUICK_GUIDED,
}

PRESETS: dict[str, Preset] = {
    "bandit-quick": Preset(
        "capacities of 2 arms, 3 players, T = 20: learns in minutes on two cores",
        Bandit,
        {"arms": 2, "players": 3, "horizon": 20},
        {"network.width": 32, "validation_worlds": 8192},
        QUICK_TUNED,
    ),
    "bandit-a3p5": Preset(
        "capacities of 3 arms, 5 players, T = 50: the paper's A3P5",
        Bandit,
        {"arms": 3, "players": 5, "horizon": 50},
        LARGE_BANDIT,
        _large_bandit(16, A3P5_PPO),
        "guided",
    ),
    "bandit-a5p3": Preset(
        "capacities of 5 arms, 3 players, T = 50: the paper's A5P3",
        Bandit,
        {"arms": 5, "players": 3, "horizon": 50},
        LARGE_BANDIT,
        _large_bandit(30, A5P3_PPO),
        "guided",
    ),
}

SIGNAL: Settings = {
    "network.shared": False,  # agents differ in what they sense
    "rounds": 9,
    "replay": 8192,
    "validation_worlds": 10240,
    "plan.rounds": 8,
}
SIGNAL_PPO: Settings = {
    **LARGE_PPO,
    "plan.iterations": 200,
    "plan.worlds": 256,
    "iterations": 500,
    "algorithm.entropy": 0.02,
}
SIGNAL_FROM_NOTHING: Settings = {
    **SIGNAL_PPO,
    "iterations": 320,
    "validate_every": 40,
    "dual.start": 0.07,
    "plan.follow": 0.0,
    "algorithm.stop_temperature": 0.1,
    "algorithm.early_ends": 1.0,
}
SIGNAL_GUIDE: Settings = {"guide.policy": "local-greedy", "guide.until": 0.3}
SIGNAL_OFF_POLICY: Settings = {  # a quarter of the worlds that PPO gets, and networks as wide
    "iterations": 800,
    "worlds": 512,
    "batch": 256,
    "warmup": 2048,
    "validate_every": 50,
    "validation_worlds": 4096,
    "polish": 0.15,
    "network.width": 128,
}
SIGNAL_FROZEN: Settings = {  # the whole is theirs
    **SIGNAL_OFF_POLICY,
    "plan.iterations": 0,
    "iterations": 600,
    "rounds": None,
    "polish": 0.0,
}
SIGNAL_THOMPSON: Settings = {  # a belief of 25 MB in each world
    **SIGNAL_FROZEN,
    "worlds": 64,
    "warmup": 256,
    "validate_every": 100,
    "validation_worlds": 256,
}
SIGNAL_RIVALS: dict[str, Settings] = {name: SIGNAL_OFF_POLICY for name in ALGORITHMS} | {
    "random": SIGNAL_FROZEN,
    "thompson": SIGNAL_THOMPSON,
    "thompson-paper": SIGNAL_THOMPSON,
}
SIGNAL_QUICK: Settings = {
    **SIGNAL,
    "network.width": 32,
    "rounds": 6,
    "replay": 2048,
    "validation_worlds": 4096,
    "plan.rounds": 5,
}
SIGNAL_QUICK_OFF_POLICY: Settings = {"iterations": 1300}
SIGNAL_QUICK_PPO: Settings = {
    "iterations": 240,
    "worlds": 192,
    "replay": 192,
    "validate_every": 20,
    "polish": 0.1,
    "algorithm.entropy": 0.02,
}
NEVER_ENDS: Settings = {"rounds": None}
PRESETS |= {
    "signal-quick": Preset(
        "a source on a 12×12 grid, windows of 3×3, T = 12: learns in minutes on two cores",
        Signal,
        {"grid": 12, "window": 3, "move": 3, "distance": 5, "decay": 0.5, "horizon": 12},
        SIGNAL_QUICK,
        {name: SIGNAL_QUICK_OFF_POLICY for name in ALGORITHMS}
        | {name: SIGNAL_QUICK_OFF_POLICY | NEVER_ENDS for name in ("random", "thompson", "thompson-paper")}
        | {"ppo": SIGNAL_QUICK_PPO, "guided": SIGNAL_QUICK_PPO | SIGNAL_GUIDE},
    ),
    "signal": Preset(
        "a source and a distractor on a 25×25 grid, T = 25: the paper's signal localization",
        Signal,
        {},
        SIGNAL,
        SIGNAL_RIVALS | {"ppo": SIGNAL_FROM_NOTHING, "guided": SIGNAL_PPO | SIGNAL_GUIDE},
    ),
}

DATA = "data/wqp"
"""Where `icmape data fetch` puts what it downloads, unless told."""
HOTSPOT: Settings = {
    "rounds": 6,
    "replay": 16384,
    "validation_worlds": 10240,
    "inference_rate": 3e-3,
    "plan.rounds": 5,
}
HOTSPOT_OFF_POLICY: Settings = {  # as many worlds as the guided team got in its runs, and networks as wide
    "iterations": 625,
    "worlds": 1024,
    "batch": 256,
    "warmup": 2048,
    "rounds": 14,
    "validate_every": 25,
    "polish": 0.15,
    "network.width": 128,
}
HOTSPOT_FROZEN: Settings = {  # the whole is theirs
    **HOTSPOT_OFF_POLICY,
    "plan.iterations": 0,
    "iterations": 400,
    "worlds": 512,
    "rounds": None,
    "polish": 0.0,
}
FROZEN = ("random", "gp-map", "gp-map-top6", "gp-map-top20")
HOTSPOT_RIVALS: dict[str, Settings] = {name: HOTSPOT_OFF_POLICY for name in ALGORITHMS} | {
    name: HOTSPOT_FROZEN for name in FROZEN
}
HOTSPOT_PPO: Settings = {**LARGE_PPO, "plan.worlds": 512}
HOTSPOT_N1_PPO: Settings = {
    **HOTSPOT_PPO,
    "iterations": 250,
    "algorithm.stop_temperature": 0.1,
    "algorithm.early_ends": 1.0,
}
HOTSPOT_N1: Settings = {"rounds": 14, "plan.rounds": 13}
HOTSPOT_GUIDE: Settings = {"guide.policy": "reading-list", "guide.until": 0.3}
HOTSPOT_QUICK_OFF_POLICY: Settings = {"iterations": 1000}
HOTSPOT_QUICK_PPO: Settings = {
    "iterations": 240,
    "worlds": 320,
    "replay": 320,
    "validate_every": 20,
    "polish": 0.15,
    "batch": 128,
}
PRESETS |= {
    "nitrate-synthetic": Preset(
        "one of the 5 highest of some 130 cells in made-up fields like nitrate's, 6 crews, T = 40: learns in minutes",
        Hotspot,
        {"synthetic": 0},
        {**HOTSPOT, "network.inference": "dense", "replay": 8192, "validation_worlds": 2048},
        {name: HOTSPOT_QUICK_OFF_POLICY for name in ALGORITHMS}
        | {name: HOTSPOT_QUICK_OFF_POLICY | NEVER_ENDS for name in FROZEN}
        | {"ppo": HOTSPOT_QUICK_PPO, "guided": HOTSPOT_QUICK_PPO | HOTSPOT_GUIDE},
        "guided",
    ),
    "nitrate": Preset(
        "one of the 5 highest cells for nitrate in Maryland, 6 crews, T = 40, real data: the paper's monitoring task",
        Hotspot,
        {"data": [DATA]},
        HOTSPOT,
        HOTSPOT_RIVALS | {"ppo": HOTSPOT_PPO, "guided": HOTSPOT_PPO | HOTSPOT_GUIDE},
        "guided",
    ),
    "nitrate-n1": Preset(
        "the same with one reading per query instead of five",
        Hotspot,
        {"data": [DATA], "repeats": 1},
        HOTSPOT | HOTSPOT_N1,
        HOTSPOT_RIVALS | {"ppo": HOTSPOT_N1_PPO, "guided": HOTSPOT_PPO | HOTSPOT_GUIDE},
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
