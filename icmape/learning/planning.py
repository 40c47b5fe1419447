"""Plan training on the host: plans of increasing length until one reaches the target.

RUN/plan.json holds the plans of all seeds. A resumed run reads the length of its episodes from it.
"""

import dataclasses
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from icmape.errors import UserError
from icmape.io import read_bounded, write_atomically
from icmape.json_text import parse
from icmape.learning import train
from icmape.learning.config import Config
from icmape.learning.phases import COMPILING, begin
from icmape.learning.plan import PlanFound, training_rounds
from icmape.problem import Problem

log = logging.getLogger("icmape")

PARTS = 5  # of plan training, each followed by a progress message


def find_plans(
    problem: Problem,
    config: Config,
    interrupted: Callable[[], bool] = lambda: False,
    late: Callable[[], bool] = lambda: False,
) -> PlanFound:
    """The best plan of each seed. The length is doubled while some seed does not reach the target.

    Raises KeyboardInterrupt if `interrupted`, as there is no state to save yet. Returns the current plans once `late`.
    """
    seeds, inference, shared = jnp.asarray(config.seeds, jnp.int32), None, config.for_programs()
    rounds = min(config.plan.init_rounds, problem.horizon - 1)
    while True:
        begin("plan", f"compiling schedules of {rounds} rounds", COMPILING)
        states = train.begin_plans(problem, shared, rounds, seeds, inference)
        part = max(1, config.plan.iterations // PARTS)
        ends = [time.monotonic()]
        for first in range(0, config.plan.iterations, part):
            count = min(part, config.plan.iterations - first)
            states, means = train.advance_plans(problem, shared, states, jnp.int32(first), jnp.int32(count))
            sure = float(np.max(np.asarray(means["plan_confidence"])))
            ends.append(time.monotonic())
            left = _left(ends, config.plan.iterations - first - count, part)
            done = f"{first + count} of {config.plan.iterations} iterations"
            begin("plan", f"{rounds} rounds, {done}, confidence {sure:.3f}", left)
            if interrupted():
                raise KeyboardInterrupt
            if late():
                break
        begin("plan", "comparing the schedules", COMPILING)
        plans: PlanFound = train.choose_plans(problem, shared, states)
        log.info("%s", summary(config, plans))
        if late() or rounds >= problem.horizon - 1 or bool(jnp.all(jnp.isfinite(plans.longest))):
            return plans
        rounds, inference = min(2 * rounds, problem.horizon - 1), plans.inference


def _left(ends: list[float], iterations: int, part: int) -> str:
    """The time that is left, from that of the last part. The first part is compiled, too, and says nothing."""
    return f"{(ends[-1] - ends[-2]) * iterations / part:.0f} s left" if len(ends) > 2 and iterations else ""


def summary(config: Config, plans: PlanFound) -> str:
    """The length or the accuracy of the plan of each seed, in one line."""
    parts = []
    for index, seed in enumerate(config.seeds):
        length, accuracy = float(plans.length[index]), np.asarray(plans.accuracy[index])
        reached = f"{length:.1f} rounds" if np.isfinite(length) else f"{accuracy[-1]:.3f} after {len(accuracy) - 1}"
        parts.append(f"seed {seed}: {reached}")
    return f"best schedule found, to accuracy {1 - config.delta:g}: " + ", ".join(parts)


def with_rounds(problem: Problem, config: Config, lengths: list[float]) -> Config:
    """The settings with `max_rounds` from the longest of these plans, unless it is set."""
    if config.max_rounds is not None:
        return config
    return dataclasses.replace(config, max_rounds=max(training_rounds(problem, length) for length in lengths))


def write_plans(folder: Path, config: Config, plans: PlanFound) -> None:
    """Write the plans as JSON: preferred actions, scores of all actions, and accuracy after 0, 1, 2 ... rounds."""
    rows: list[dict[str, Any]] = []
    for index, seed in enumerate(config.seeds):
        length = float(plans.length[index])
        rows.append(
            {
                "seed": seed,
                "length": length if np.isfinite(length) else None,
                "accuracy": [round(float(x), 4) for x in np.asarray(plans.accuracy[index])],
                "actions": np.argmax(np.asarray(plans.table[index]), axis=-1).tolist(),
                "scores": np.round(np.asarray(plans.table[index]).astype(float), 3).tolist(),
            }
        )
    write_atomically(folder / "plan.json", json.dumps({"rounds": config.max_rounds, "plans": rows}).encode() + b"\n")


def read_rounds(folder: Path) -> int:
    """The length of the episodes of a run, from its plan file."""
    path = folder / "plan.json"
    try:
        rounds = parse(read_bounded(path))["rounds"]
        if not isinstance(rounds, int) or rounds < 2:
            raise ValueError(f"rounds is {rounds!r}")
        return rounds
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} cannot be read ({error}): this run cannot be resumed; train again") from error


def plan_of(plans: PlanFound, index: int) -> PlanFound:
    """The plan of one seed."""
    return jax.tree.map(lambda x: x[index], plans)
