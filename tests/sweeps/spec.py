"""Sweeps of runs that compile and train as fast as any."""

import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from icmape.sweeps.pull import write_plan
from icmape.sweeps.spec import Run, runs_of

SPEC_FILE = """
preset = "bandit-quick"
algorithm = "random"
episodes = 50

[arguments]
arms = 2
players = 2
horizon = 8

[settings]
iterations = 12
iterations_per_call = 2
num_envs = 8
batch_size = 8
gradient_steps = 1
buffer_size = 32
learning_starts = 8
validation_interval = 10
validation_episodes = 16
settling_episodes = 64
network.hidden_size = 4
checkpoint_minutes = 0.0
plan.iterations = 0

"""
SPEC = tomllib.loads(SPEC_FILE)


def sweep(out: Path, **grid: list) -> list[Run]:
    """Write the plan of a sweep with this grid."""
    runs = runs_of({**SPEC, "grid": grid})
    write_plan(out, runs)
    return runs


def wait_for(condition: Callable[[], bool], seconds: float = 200) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
