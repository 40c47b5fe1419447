"""Rounds that baselines need for accuracy 1-δ, with their error: python -m benchmarks.limits PRESET OUT.json ROUNDS.

Every episode is played for ROUNDS rounds whatever the posterior says; where each level would have stopped is read off
afterwards. What is reported is interpolated between the two levels around 1-δ, with a bootstrap over episodes.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from icmape.baselines.registry import baselines_for
from icmape.baselines.rules import LevelRule, Rule, Task, built
from icmape.baselines.tuning import Watched, watch
from icmape.cli.teams import changes_of, chosen_problem
from icmape.io import circumstances, write_atomically
from icmape.problem.spec import describe

LEVELS = np.linspace(0.3, 0.98, 69)
NEVER = 2.0  # a level that no probability reaches


def at_target(watched: Watched, target: float) -> float:
    """Rounds of data at this accuracy; not a number if it is not reached."""
    points = [watched.at(level) for level in LEVELS]
    accuracy = np.maximum.accumulate([point.accuracy for point in points])
    if accuracy[-1] < target:
        return float("nan")
    return float(np.interp(target, accuracy, [point.tau - 1 for point in points]))


def resampled(watched: Watched, chance: np.random.Generator) -> Watched:
    rows = chance.integers(0, len(watched.stop), len(watched.stop))
    return Watched(*(part[rows] for part in watched))


def by_level(rule: LevelRule, task: Task, args: argparse.Namespace) -> dict[str, Any]:
    """A baseline that stops when something reaches a level."""
    watched = watch(built(rule, task), NEVER, args.episodes, args.seed)
    chance = np.random.default_rng(0)
    spread = [at_target(resampled(watched, chance), 1 - task.delta) for _ in range(200)]
    rounds = at_target(watched, 1 - task.delta)
    if np.isnan(rounds):
        return {"rounds": None, "standard_error": None, "accuracy_after_each_round": _means(watched)}
    return {
        "rounds": round(rounds, 3),
        "standard_error": round(float(np.nanstd(spread)), 3),
        "accuracy_after_each_round": _means(watched),
        "levels": [[float(f"{v:.4g}") for v in watched.at(level)] for level in LEVELS[::4]],
    }


def _means(watched: Watched) -> list[float]:
    return np.round(watched.right.mean(axis=0), 4).tolist()


def by_length(rule: Rule, task: Task, args: argparse.Namespace) -> dict[str, Any]:
    """A baseline that stops after a number of rounds: between two lengths it is interpolated."""
    points = rule.curve(task, args.episodes, args.seed)
    accuracy = np.maximum.accumulate([point.accuracy for point in points])
    reached = accuracy[-1] >= 1 - task.delta
    rounds = float(np.interp(1 - task.delta, accuracy, [point.tau - 1 for point in points])) if reached else None
    after = [round(point.accuracy, 4) for point in points]
    return {"rounds": rounds, "standard_error": None, "accuracy_after_each_round_from_1": after}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.limits", description=__doc__)
    parser.add_argument("preset")
    parser.add_argument("out", type=Path)
    parser.add_argument("rounds", type=int)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--delta", type=float, default=0.1)
    parser.add_argument("--only", nargs="+", default=["central-adaptive", "reading-list"])
    parser.add_argument("--data", nargs="+", default=[])
    parser.add_argument("--set", nargs="+", default=[])
    args = parser.parse_args(words)
    changes = {**changes_of(args.data, args.set), "horizon": args.rounds + 1}
    problem = chosen_problem(args.preset, None, changes)
    results = {}
    task = Task(problem, args.delta)
    for name in args.only:
        rule, began = baselines_for(problem)[name], time.time()
        results[name] = by_level(rule, task, args) if isinstance(rule, LevelRule) else by_length(rule, task, args)
        results[name]["seconds"] = round(time.time() - began, 1)
        print(name, results[name]["rounds"], "±", results[name]["standard_error"], flush=True)
        about = {"preset": args.preset, "problem": describe(problem, local=False), "episodes": args.episodes}
        content = {**about, "seed": args.seed, "target": 1 - args.delta, "baselines": results, **circumstances()}
        write_atomically(args.out, json.dumps(content, indent=2).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
