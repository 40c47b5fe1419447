"""Evaluating a shipped team in many worlds: worlds a second, and the memory of the whole process."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.timing import Measurement

TEAM = "bandit-quick"
FEW, MANY = 100_000, 10_000_000


def measure(quick: bool = False) -> Measurement:
    """Megabytes that the evaluation in the largest number of worlds takes."""
    rows = [run_process(episodes) for episodes in ((FEW // 10, FEW) if quick else (FEW, MANY))]
    return Measurement(rows[-1]["megabytes"], {"team": TEAM, "worlds": rows[-1]["worlds"]}, {}, 1, {"rows": rows})


def run_process(episodes: int) -> dict[str, float]:
    """Evaluate in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.evaluation", str(episodes)]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    root = Path(__file__).parents[1]
    done = subprocess.run(command, env=environment, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def evaluate_in(episodes: int) -> dict[str, Any]:
    """Evaluate in so many worlds, the exact posterior beside the team's; the clock starts with the first batch."""
    from icmape.play.team_files import load

    team = load(TEAM)
    team.evaluate(episodes=1_000)
    began = time.perf_counter()
    result = team.evaluate(episodes=episodes, seed=1)
    rate = episodes / (time.perf_counter() - began)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return {"worlds": episodes, "worlds a second": rate, "megabytes": most, "accuracy": result.accuracy}


if __name__ == "__main__":
    print(json.dumps(evaluate_in(int(sys.argv[1]))))
