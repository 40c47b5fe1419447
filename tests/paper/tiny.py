"""A setting that takes seconds: its teams are made by hand where others are trained, all else is as it is.

As a program (`python -m tests.paper.tiny FOLDER`), it is reproduced in a folder.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp

from icmape.evaluation.robustness import Sweep
from icmape.learning.config import Config
from icmape.learning.run_folder import write_config
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.zoo.bandit.bandit import Bandit
from paper import command, experiments
from paper import training as module
from paper.experiments import MAIN, Method, Scale, Setting
from paper.work_plan import Plan

SEED = 215
CAPACITIES = Sweep("capacities", {"capacity_concentration": (0.5, 1.0, 5.0)})
TINY = Setting(
    "tiny",
    "tiny",
    "a bandit of one arm",
    # at full size nothing of it is there and nothing ships
    Scale("signal-quick", sweeps=(Sweep("distance", {"exact_distance": (5, 10)}),), seeds=(SEED, 216), episodes=100),
    Scale(
        "bandit-quick",
        {"arms": 1, "players": 2, "horizon": 6},
        sweeps=(CAPACITIES,),
        baselines=("random",),
        seeds=(SEED,),
        episodes=300,
        sweep_episodes=300,
        baseline_episodes=300,
        curve_episodes=300,
        certificate_worlds=300,
    ),
    (Method(MAIN, "ours (random)", "random", folder_name="random"), Method("td3", "ICMAPE-TD3", "td3")),
    central="central-greedy",
    schedule="open-loop",
    rule="random",
)


def team(delta: float = 0.1, rounds: int = 3) -> Team:
    """Both players on the only arm."""
    policy = Schedule(jnp.zeros((1, 2), jnp.int32), 2)
    return Team(Bandit(1, 2, 6), policy, FixedLength(rounds), ExactInference(), delta, json.dumps({"seed": SEED}))


def train_run(problem: Problem, config: Config, folder: Path, **options: Any) -> SimpleNamespace:
    """As if it had been trained: its configuration and metrics are there."""
    write_config(folder, problem, config)
    numbers = {"tau": 4.0, "confidence": 0.9, "seconds": 1.0}
    rows = [
        {"seed": seed, "iteration": i, "environment_steps": 10 * i, **numbers}
        for seed in config.seeds
        for i in (1, 2, 3)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return SimpleNamespace(interrupted=False, config=config, faults=dict)


def save_teams(run: SimpleNamespace, folder: Path) -> None:
    """A team by hand for every seed."""
    for seed in run.config.seeds:
        team().save(folder / f"team-{seed}.safetensors")


def prepare(set_: Callable[[object, str, Any], None]) -> None:
    """Register the setting, and what stands in for training."""
    set_(experiments, "SETTINGS", {**experiments.SETTINGS, TINY.name: TINY})
    set_(command, "SETTINGS", {TINY.name: TINY})  # what is on the page
    set_(module, "train_run", train_run)
    set_(module, "save_teams", save_teams)


def quick(out: Path, **options: Any) -> Plan:
    """A quick plan in a folder."""
    return Plan(out, quick=True, **options)


def words(out: object, workers: int = 1) -> list[str]:
    """The command."""
    return ["reproduce", TINY.name, "--quick", "--out", str(out), "--workers", str(workers)]


if __name__ == "__main__":
    from icmape import cli

    prepare(setattr)
    sys.exit(cli.main(words(sys.argv[1])))
