"""The training default on the example problems: results/zoo.json, and the table of docs/results/zoo.md.

python -m benchmarks.zoo [--only NAME] [--seeds N ...] [--episodes N]

All settings have their defaults. The team is compared with fixed-length stops on random actions, on round robin and on
the plan that training found first, and with its own sampling and a stop on all agents' data.
"""

import argparse
import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax.numpy as jnp
import numpy as np

import icmape
from benchmarks.timing import others_share
from icmape.io import circumstances, write_atomically
from icmape.learning.plan import TablePolicy
from icmape.play.episodes import Episodes, play
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Turns, Uniform
from icmape.play.stop import FixedLength, LearnedStop
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.spec import load_class

ROOT = Path(__file__).resolve().parents[1]
PROBLEMS = {
    "pooling": "examples.pooling:Pooling",
    "faults": "examples.faults:Faults",
    "patrol": "examples.patrol:Patrol",
    "dials": "examples.dials:Dials",
    "mixing": "examples.mixing:Mixing",
}
DELTA, EVALUATION_SEED = 0.1, 0
NOT_RUN: dict[str, float] = {}
MARK = "<!-- table: written by a command -->"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description="The default on example problems.")
    parser.add_argument("--only", choices=PROBLEMS, action="append", help="one of them; may be repeated")
    parser.add_argument("--seeds", type=int, nargs="+", default=[215])
    parser.add_argument("--episodes", type=int, default=10_000)
    chosen = parser.parse_args()
    path = ROOT / "results" / "zoo.json"
    results: dict[str, Any] = json.loads(path.read_text())["problems"] if path.exists() else {}
    for name in chosen.only or PROBLEMS:
        results[name] = measure(load_class(PROBLEMS[name])(), chosen.seeds, chosen.episodes) | {"at": circumstances()}
        print(json.dumps({name: results[name]}, indent=1))
        content = {"delta": DELTA, "episodes": chosen.episodes, "problems": results}
        write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")
    write_table(ROOT / "docs" / "results" / "zoo.md", results)


def measure(problem: Problem, seeds: list[int], episodes: int) -> dict[str, Any]:
    """One team a seed, each in a run of its own, and what it is compared with."""
    teams = [train_and_judge(problem, seed, episodes) for seed in seeds]
    results: dict[str, Any] = {"teams": teams, "posterior": problem.posterior}
    if problem.posterior == "exact":
        actors = {"random": Uniform(problem.agents, problem.actions + 1), "turns": Turns(problem)}
        for name, policy in actors.items():
            team = Team(problem, policy, FixedLength(problem.horizon - 1), ExactInference(), DELTA)
            results[name] = clock(play(team, episodes, EVALUATION_SEED).team.correct.mean(axis=0))
    else:
        results["random"] = random_clock(problem, seeds[0], episodes)
    return results


def train_and_judge(problem: Problem, seed: int, episodes: int) -> dict[str, Any]:
    """Train as a user would, with everything counted; then evaluate."""
    with TemporaryDirectory() as folder:
        busy, began = others_share(), time.monotonic()
        team = icmape.train(problem, seeds=(seed,), out=Path(folder) / "run", progress=False)
        seconds = time.monotonic() - began
        plan = json.loads((Path(folder) / "run" / "plan.json").read_text())["plans"][0]
    evaluation = team.evaluate(episodes=episodes, seed=EVALUATION_SEED)
    inference = ExactInference() if problem.posterior == "exact" else team.inference
    whole = FixedLength(problem.horizon - 1)
    if problem.posterior == "exact":
        scores = jnp.asarray(plan["scores"], jnp.float32)
        planned = Team(problem, TablePolicy(scores), whole, inference, DELTA)
        of_plan = clock(play(planned, episodes, EVALUATION_SEED).team.correct.mean(axis=0)[: len(scores) + 1])
    else:  # what the network that learned beside the plan answered
        of_plan = clock(np.asarray(plan["accuracy"]))
    assert isinstance(team.stop, LearnedStop)
    return {
        "seed": seed,
        "seconds": round(seconds, 1),
        "cores": len(os.sched_getaffinity(0)),
        "others": busy,
        "accuracy": evaluation.accuracy,
        "tau": evaluation.tau,
        "plan": of_plan,
        "global_stop": global_stop(play(replace(team, stop=whole), episodes, EVALUATION_SEED)),
    }


def clock(right: np.ndarray) -> dict[str, float] | None:
    """The fewest rounds after which answers are right often enough, by how often they are after 0, 1, 2 ... rounds."""
    enough = np.flatnonzero(right >= 1 - DELTA)
    return None if len(enough) == 0 else {"tau": float(enough[0] + 1), "accuracy": float(right[enough[0]])}


def global_stop(played: Episodes) -> dict[str, float] | None:
    """The lowest level of the network's confidence, over everyone's data, that gives enough accuracy."""
    sure, right = played.team.confidence, played.team.correct
    for level in np.arange(0.5, 1.0, 0.005):
        reached = sure >= level
        reached[:, -1] = True
        stop = reached.argmax(axis=1)
        accuracy = right[np.arange(len(stop)), stop].mean()
        if accuracy >= 1 - DELTA:
            return {"tau": float(stop.mean() + 1), "accuracy": float(accuracy), "level": float(level)}
    return None


def random_clock(problem: Problem, seed: int, episodes: int) -> dict[str, float] | None:
    """Random actions where there is no exact posterior: a network trained on as many of them as ours sees answers."""
    worlds = {"num_envs": 256, "batch_size": 256, "buffer_size": 1024, "greedy_fraction": 0.5}
    team = icmape.train(problem, algorithm="random", seeds=(seed,), progress=False, **worlds)
    whole = replace(team, stop=FixedLength(problem.horizon - 1))
    return clock(play(whole, episodes, EVALUATION_SEED).team.correct.mean(axis=0))


def write_table(page: Path, results: dict[str, Any]) -> None:
    """The table in the page, behind its mark."""
    head = "| problem | τ | accuracy | seconds | clock on its plan | on round robin | on random actions | global stop |"
    rows = [row(name, entry, team) for name, entry in results.items() for team in entry["teams"]]
    table = "\n".join([head, "|---|---|---|---|---|---|---|---|", *rows])
    text = page.read_text()
    page.write_text(re.sub(rf"{re.escape(MARK)}.*", lambda _: f"{MARK}\n\n{table}\n", text, flags=re.S))


def row(name: str, entry: dict[str, Any], team: dict[str, Any]) -> str:
    """A team's line."""
    cells = [
        f"{name}, seed {team['seed']}",
        f"**{team['tau']:.2f}**",
        f"{team['accuracy']:.3f}",
        f"{team['seconds']:.0f}",
        *(_tau(at) for at in (team["plan"], entry.get("turns", NOT_RUN), entry.get("random"), team["global_stop"])),
    ]
    return f"| {' | '.join(cells)} |"


def _tau(at: dict[str, float] | None) -> str:
    if at == NOT_RUN:
        return "not run"
    return "–" if at is None else f"{at['tau']:.2f} ({at['accuracy']:.3f})"


if __name__ == "__main__":
    main()
