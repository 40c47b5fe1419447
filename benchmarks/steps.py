"""Steps of the PettingZoo environment: whole episodes of random actions with their resets; exact posterior answers.

A step is one compiled call. Rates are per CPU second of the whole process, all its threads included: what one core
gives if nothing else runs on it. The rate by the clock is beside it.
"""

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.timing import Measurement
from icmape.ecosystem import to_pettingzoo

PRESETS = ("bandit-quick", "bandit-a3p5", "signal-quick")
STEPS = 4000  # of a sample


def measure(quick: bool = False) -> Measurement:
    """Steps per CPU second on the first preset, and all presets in the rows."""
    repeats = 3 if quick else 7
    rows = [rates(preset, repeats) for preset in PRESETS]
    first = next(iter(rows[0].values()))
    return Measurement(first, {"preset": PRESETS[0], "steps": STEPS}, {}, repeats, {"rows": rows})


def rates(preset: str, repeats: int) -> dict[str, float]:
    """Medians over the repeats."""
    env = to_pettingzoo(preset)
    actions = random_actions(env)
    play(env, actions, STEPS // 10)  # compile
    samples = [play(env, actions, STEPS) for _ in range(repeats)]
    cpu, wall = (STEPS / statistics.median(column) for column in zip(*samples, strict=True))
    return {f"{preset}: steps per CPU second": cpu, "steps per second": wall}


def play(env: Any, actions: Iterator[dict[str, int]], steps: int) -> tuple[float, float]:
    """CPU seconds and seconds of so many steps; agents never stop, so the horizon ends every episode."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(steps):
        if not env.agents:
            env.reset()
        env.step(next(actions))
    return time.process_time() - cpu, time.perf_counter() - wall


def random_actions(env: Any) -> Iterator[dict[str, int]]:
    """Joint actions without STOP."""
    choices = env.game.problem.actions
    rows = np.random.default_rng(0).integers(0, choices, (1000, len(env.possible_agents))).tolist()
    made = [dict(zip(env.possible_agents, row, strict=True)) for row in rows]
    while True:
        yield from made
