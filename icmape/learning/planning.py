"""The plan's phase on the host: longer and longer plans until one reaches the target, and what training takes from it.

RUN/plan.json holds the plans of all seeds: a run that is resumed takes the length of its episodes from there.
"""

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from icmape.errors import UserError
from icmape.io import write_atomically
from icmape.learning import train
from icmape.learning.config import Config
from icmape.learning.plan import PlanFound, training_rounds
from icmape.problem import Problem

PARTS = 5  # of the phase, after each of which its state is told


def find_plans(
    problem: Problem,
    config: Config,
    tell: Callable[[str], None],
    asked: Callable[[], bool] = lambda: False,
    late: Callable[[], bool] = lambda: False,
) -> PlanFound:
    """The best plan of each seed; twice as long ones are tried while some seed does not reach the target.

    If it is `asked` to leave it raises KeyboardInterrupt: there is nothing yet to be saved. Once it is `late` the plans
    are taken as they are.
    """
    seeds, inference = jnp.asarray(config.seeds, jnp.int32), None
    rounds = min(config.plan.init_rounds, problem.horizon - 1)
    while True:
        states = train.begin_plans(problem, config, rounds, seeds, inference)
        part = max(1, config.plan.iterations // PARTS)
        began = time.monotonic()
        for first in range(0, config.plan.iterations, part):
            count = min(part, config.plan.iterations - first)
            states, means = train.advance_plans(problem, config, states, jnp.int32(first), jnp.int32(count))
            sure = float(np.max(np.asarray(means["plan_confidence"])))
            tell(
                f"plan of {rounds} rounds: {first + count} of {config.plan.iterations} iterations, "
                f"{time.monotonic() - began:.0f} s, confidence {sure:.3f} at its end"
            )
            if asked():
                raise KeyboardInterrupt
            if late():
                break
        plans: PlanFound = train.choose_plans(problem, config, states)
        tell(summary(config, plans))
        if late() or rounds >= problem.horizon - 1 or bool(jnp.all(jnp.isfinite(plans.longest))):
            return plans
        rounds, inference = min(2 * rounds, problem.horizon - 1), plans.inference


def summary(config: Config, plans: PlanFound) -> str:
    """What each seed's plan reaches, in a line."""
    parts = []
    for index, seed in enumerate(config.seeds):
        length, accuracy = float(plans.length[index]), np.asarray(plans.accuracy[index])
        reached = f"{length:.1f} rounds" if np.isfinite(length) else f"{accuracy[-1]:.3f} after {len(accuracy) - 1}"
        parts.append(f"seed {seed}: {reached}")
    return f"best schedule found, to accuracy {1 - config.delta:g}: " + ", ".join(parts)


def with_rounds(problem: Problem, config: Config, lengths: list[float]) -> Config:
    """The settings with episodes as long as the longest of these plans asks for, unless that is set."""
    if config.max_rounds is not None:
        return config
    return dataclasses.replace(config, max_rounds=max(training_rounds(problem, length) for length in lengths))


def write_plans(folder: Path, config: Config, plans: PlanFound) -> None:
    """The plans as JSON: their preferred actions, the scores of all (where one is not open to an agent, the best that
    is counts), and how often they are right after 0, 1, 2 ... rounds."""
    found: list[dict[str, Any]] = []
    for index, seed in enumerate(config.seeds):
        length = float(plans.length[index])
        found.append(
            {
                "seed": seed,
                "length": length if np.isfinite(length) else None,
                "accuracy": [round(float(x), 4) for x in np.asarray(plans.accuracy[index])],
                "actions": np.argmax(np.asarray(plans.table[index]), axis=-1).tolist(),
                "scores": np.round(np.asarray(plans.table[index]).astype(float), 3).tolist(),
            }
        )
    write_atomically(folder / "plan.json", json.dumps({"rounds": config.max_rounds, "plans": found}).encode() + b"\n")


def read_rounds(folder: Path) -> int:
    """How long the episodes of a run are whose plan has been found."""
    path = folder / "plan.json"
    try:
        rounds = json.loads(path.read_text())["rounds"]
        if not isinstance(rounds, int) or rounds < 2:
            raise ValueError(f"rounds is {rounds!r}")
        return rounds
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} cannot be read ({error}): this run cannot be resumed; train again") from error


def plan_of(plans: PlanFound, index: int) -> PlanFound:
    """That of one seed."""
    return jax.tree.map(lambda x: x[index], plans)
