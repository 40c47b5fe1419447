"""Three seeds in one program, against a program for each.

Every program is a fresh process without a compilation cache, timed from its start to its end. On a CPU the seeds of one
program take turns, so what is saved is starting and compiling, and a short run saves most: `training_alone` is the
ratio without both.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.timing import Measurement, assert_same
from icmape.learning import train
from icmape.learning.presets import preset
from icmape.settings import override

SEEDS = (215, 219, 321)
PRESET = "bandit-quick"
ITERATIONS = 20


def measure(quick: bool = False) -> Measurement:
    """How many times faster one program for all seeds is."""
    seeds, iterations = (SEEDS[:2], 2) if quick else (SEEDS, ITERATIONS)
    separate = [run_process(iterations, seed) for seed in seeds[:-1]]
    together = run_process(iterations, *seeds)  # in the middle, so that a change in load hits both
    separate.append(run_process(iterations, seeds[-1]))
    losses = [result["losses"][0] for result in separate]
    difference = assert_same("seeds", together["losses"], losses, tolerance=0.05)
    seconds = {"one program": [together["total"]], "a program each": [result["total"] for result in separate]}
    training = {"one program": [together["training"]], "a program each": [result["training"] for result in separate]}
    notes = {
        "training_seconds": training,
        "training_alone": _ratio(training),
        "largest_relative_difference": difference,
    }
    sizes = {"seeds": len(seeds), "preset": PRESET, "iterations": iterations}
    return Measurement(_ratio(seconds), sizes, seconds, 1, notes)


def _ratio(seconds: dict[str, list[float]]) -> float:
    ours, other = seconds.values()
    return sum(other) / sum(ours)


def run_process(iterations: int, *seeds: int) -> dict[str, Any]:
    """Train these seeds in a process of their own."""
    command = [sys.executable, "-m", "benchmarks.seeds", str(iterations), *map(str, seeds)]
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    began = time.perf_counter()
    done = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True
    )
    return {"total": time.perf_counter() - began, **json.loads(done.stdout.splitlines()[-1])}


def train_seeds(iterations: int, seeds: tuple[int, ...]) -> dict[str, Any]:
    """What a process does: compile, and train all its seeds for some iterations."""
    chosen = preset(PRESET)
    problem, config = chosen.build(), override(chosen.config("td3"), {"seeds": seeds, "iterations": iterations})
    states = train.start(problem, config, jnp.asarray(seeds, jnp.int32))
    advance = train.advance.lower(problem, config, states, jnp.int32(0), jnp.int32(1)).compile()
    jax.block_until_ready(states)
    began = time.perf_counter()
    _, means = jax.block_until_ready(advance(problem, config, states, jnp.int32(0), jnp.int32(iterations)))
    return {"training": time.perf_counter() - began, "losses": means["inference_loss"].tolist()}


if __name__ == "__main__":
    print(json.dumps(train_seeds(int(sys.argv[1]), tuple(map(int, sys.argv[2:])))))
