"""Time of the parts of an iteration, and its growth with worlds, width, rounds and seeds.

python -m benchmarks.iteration OUT.json [--preset NAME] [--iterations N] [--after FILE]

Every size is a process of its own: all compile side by side, and when all are done they take turns on the machine. With
--after they wait for that file, too, before they take the first turn. Times are those of a team that has followed its
teacher for some iterations, so that episodes are as long as they are in most of training.
"""

import argparse
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from icmape.baselines.by_name import find_teacher
from icmape.io import circumstances, write_atomically
from icmape.learning import train
from icmape.learning.config import Config
from icmape.learning.off_policy import Turn, learn_replayed, update_inference
from icmape.learning.presets import preset
from icmape.play.policy import as_policy
from icmape.problem import Problem
from icmape.settings import override

SIZES: dict[str, dict[str, Any]] = {
    "as trained": {},
    "worlds / 2": {"worlds": 0.5},
    "worlds x 2": {"worlds": 2},
    "width / 2": {"width": 0.5},
    "width x 2": {"width": 2},
    "rounds / 2": {"horizon": 0.5},
    "rounds x 2": {"horizon": 2},
    "3 seeds": {"seeds": 3},
}
WARM = 60  # iterations before the first that is timed
SEEDS = (215, 219, 321)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.iteration", description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--preset", default="bandit-a3p5")
    parser.add_argument("--iterations", type=int, default=30, help="iterations that are timed")
    parser.add_argument("--after", type=Path, help="take the first turn when this file exists")
    parser.add_argument("--size", choices=SIZES, help=argparse.SUPPRESS)
    parser.add_argument("--lock", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.size:
        print(json.dumps(measure(args.preset, args.size, args.iterations, partial(Turns, args.lock, args.after))))
        return
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "lock"
        base = [sys.executable, "-m", "benchmarks.iteration", *sys.argv[1:], "--lock", str(lock), "--size"]
        environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_ENABLE_COMPILATION_CACHE": "false"}
        running = {
            name: subprocess.Popen([*base, name], env=environment, stdout=subprocess.PIPE, text=True) for name in SIZES
        }
        while any(process.poll() is None for process in running.values()):
            time.sleep(0.2)
            if broken := [name for name, process in running.items() if process.poll()]:
                for process in running.values():  # they would wait for it
                    process.kill()
                sys.exit(f"failed: {', '.join(broken)}")
        outputs = {name: process.communicate()[0] for name, process in running.items()}
    results = {name: json.loads(text.splitlines()[-1]) for name, text in outputs.items()}
    content = {"preset": args.preset, **circumstances()}
    write_atomically(args.out, json.dumps(content | {"sizes": results}, indent=2).encode() + b"\n")
    for name, row in results.items():
        print(
            f"{name:12s} {row['seconds_per_iteration']:.4f} s an iteration, compiled in {row['compile_seconds']:.0f} s"
        )


def measure(name: str, size: str, iterations: int, turn: Callable[[], Any]) -> dict[str, Any]:
    """One size: compile, wait for the turn, time."""
    problem, config = scaled(name, **SIZES[size])
    teacher = find_teacher(problem, config)
    began = time.perf_counter()
    states = train.start(problem, config, jnp.asarray(config.seeds, jnp.int32))
    step = train.advance.lower(problem, config, states, jnp.int32(0), jnp.int32(1), teacher).compile()
    row: dict[str, Any] = {
        "worlds": config.num_envs,
        "width": config.network.hidden_size,
        "horizon": problem.horizon,
        "seeds": len(config.seeds),
        "compile_seconds_among_eight": time.perf_counter() - began,
    }
    parts = (
        compiled_parts(problem, config, jax.tree.map(lambda x: x[0], states), teacher) if size == "as trained" else {}
    )
    with turn():
        states, means = jax.block_until_ready(step(problem, config, states, jnp.int32(0), jnp.int32(WARM), teacher))
        began = time.perf_counter()
        states, means = jax.block_until_ready(
            step(problem, config, states, jnp.int32(WARM), jnp.int32(iterations), teacher)
        )
        row["seconds_per_iteration"] = (time.perf_counter() - began) / iterations
        row["tau"] = float(jnp.mean(means["tau"]))
        state = jax.tree.map(lambda x: x[0], states)
        row["parts"] = {name: _seconds(part, problem, state, iterations) for name, part in parts.items()}
    return row


def scaled(
    name: str, worlds: float = 1, width: float = 1, horizon: float = 1, seeds: int = 1
) -> tuple[Problem, Config]:
    """A preset with some of its sizes changed; it follows its teacher as long as it is timed."""
    chosen = preset(name)
    config = chosen.config()
    arguments = chosen.arguments | {"horizon": int(chosen.arguments["horizon"] * horizon)}
    changes = {
        "seeds": SEEDS[:seeds],
        "num_envs": int(config.num_envs * worlds),
        "buffer_size": max(config.buffer_size, int(config.num_envs * worlds)),
        "network.hidden_size": int(config.network.hidden_size * width),
        "teacher.until": 1.0,
        "validation_interval": 10**6,
    }
    return chosen.problem(**arguments), override(config, changes)


def compiled_parts(problem: Problem, config: Config, state: train.TrainState, teacher: Any) -> dict[str, Any]:
    """What an iteration does, part by part, as programs of their own."""
    greedy = jnp.arange(config.num_envs) < config.greedy_worlds
    keys = jax.random.split(jax.random.key(1), config.num_envs)

    def play(problem: Problem, state: train.TrainState) -> Any:
        team = as_policy(state.learner.actors), state.learner.slow_inference
        return train.play(problem, config, *team, jnp.zeros(()), keys, greedy)

    def turn(problem: Problem, state: train.TrainState) -> Turn:
        fresh = play(problem, state)
        return Turn(fresh, state.replay, state.price.step_cost, jnp.int32(WARM), state.length, teacher)

    def inference(problem: Problem, state: train.TrainState) -> Any:
        current = turn(problem, state)
        return learn_replayed(update_inference, problem, config, state.learner, current, key=jax.random.key(2))[0]

    def everything(problem: Problem, state: train.TrainState) -> Any:
        return train.algorithm(config).learn(
            problem, config, state.learner, turn(problem, state), key=jax.random.key(2)
        )[0]

    def validation(problem: Problem, state: train.TrainState) -> Any:
        never = jnp.array(False)
        return train.validate(problem, config, state.learner, state.best, jnp.int32(1), never, key=jax.random.key(3))

    ways = {
        "play": play,
        "learn the inference network": inference,
        "play and learn everything": everything,
        "validate": validation,
    }
    return {name: jax.jit(way).lower(problem, state).compile() for name, way in ways.items()}


def _seconds(part: Any, problem: Problem, state: Any, repeats: int) -> float:
    jax.block_until_ready(part(problem, state))
    began = time.perf_counter()
    for _ in range(repeats):
        output = part(problem, state)
    jax.block_until_ready(output)
    return (time.perf_counter() - began) / repeats


class Turns:
    """Exclusive use of the machine among processes that share a lock, once all of them are ready."""

    def __init__(self, lock: Path, after: Path | None):
        self.lock, self.after = lock, after

    def __enter__(self) -> None:
        (self.lock.parent / f"ready-{os.getpid()}").touch()
        while len(list(self.lock.parent.glob("ready-*"))) < len(SIZES):
            time.sleep(0.2)
        while self.after is not None and not self.after.exists():
            time.sleep(0.2)
        self.file = self.lock.open("w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *error: object) -> None:
        self.file.close()


if __name__ == "__main__":
    main()
