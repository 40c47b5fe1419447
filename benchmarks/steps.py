"""Steps of the PettingZoo environment: whole episodes of random actions with their resets; exact posterior answers.

A step is one compiled call. The process has one core; the last row has all. There XLA's threads hand over the small
operations of a step to one another. Rates are per CPU second of the whole process, all its threads, and by the clock.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Measurement
from icmape.ecosystem import to_pettingzoo

PRESETS = ("bandit-quick", "bandit-a3p5", "signal-quick")
STEPS = 4000  # of a sample


def measure(quick: bool = False) -> Measurement:
    """Steps per CPU second of one core on the first preset, and all presets in the rows."""
    repeats = 3 if quick else 7
    rows = [*run_process(repeats, 1, PRESETS), *run_process(repeats, os.cpu_count() or 1, PRESETS[:1])]
    first = next(iter(rows[0].values()))
    return Measurement(first, {"preset": PRESETS[0], "steps": STEPS}, {}, repeats, {"rows": rows})


def run_process(repeats: int, cores: int, presets: Sequence[str]) -> list[dict[str, float]]:
    """Measure in a process of its own, because threads keep the cores that they were started with."""
    command = [sys.executable, "-m", "benchmarks.steps", str(repeats), str(cores), *presets]
    root, environment = Path(__file__).parents[1], os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    rows: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def rates(preset: str, repeats: int) -> dict[str, float]:
    """Medians over the repeats."""
    env = to_pettingzoo(preset)
    actions = random_actions(env)
    play(env, actions, STEPS // 10)  # compile
    samples = [play(env, actions, STEPS) for _ in range(repeats)]
    cpu, wall = (STEPS / statistics.median(column) for column in zip(*samples, strict=True))
    return {f"{preset}: steps per CPU second": cpu, "steps per second": wall, "cores": cores()}


def play(env: Any, actions: Iterator[dict[str, int]], steps: int) -> tuple[float, float]:
    """CPU seconds and seconds of so many steps; agents never stop, so the horizon ends every episode."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(steps):
        if not env.agents:
            env.reset()
        env.step(next(actions))
    return time.process_time() - cpu, time.perf_counter() - wall


def cores() -> int:
    """How many cores this process has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def random_actions(env: Any) -> Iterator[dict[str, int]]:
    """Joint actions without STOP."""
    choices = env.game.problem.actions
    rows = np.random.default_rng(0).integers(0, choices, (1000, len(env.possible_agents))).tolist()
    made = [dict(zip(env.possible_agents, row, strict=True)) for row in rows]
    while True:
        yield from made


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):  # before JAX starts its threads
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-int(sys.argv[2]) :])
    print(json.dumps([rates(preset, int(sys.argv[1])) for preset in sys.argv[3:]]))
