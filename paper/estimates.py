"""What a training run is expected to take: simulated worlds, device memory and time."""

from functools import cache
from math import prod
from typing import NamedTuple

from icmape.errors import UserError
from icmape.evaluation.results import read_json
from icmape.io import write_atomically
from icmape.learning.algorithms import PPO, Frozen
from icmape.learning.config import Config
from icmape.learning.validation import AT_ONCE
from icmape.networks.shapes import view_shapes
from paper.experiments import Method, Setting, setting_named
from paper.training import settings_of
from paper.work_plan import Plan, run_record

GIB = 2**30
OBSERVED = "observed.json"
FLOATS = 60  # kept by the gradient of a batch, for each episode, round, agent and unit of width
GRIDS = 16  # copies of the team's grid in a validation, for each world and round
SPARE = GIB  # for the device's context and for compiling
ROOM = 1.25  # for programs besides the training step: plan, validation of the best team
START_SECONDS = 120.0  # to load, compile and plan
SECONDS = {"on_policy": 0.5, "off_policy": 0.4, "frozen": 0.2}
"""An iteration of three seeds at full size while four runs share one H200, measured on A3P5 (off-policy 0.36 to 0.55,
on-policy 0.54 to 0.91 with populations of up to four); frozen policies were not measured."""


class Estimate(NamedTuple):
    """Expected size of a training run."""

    worlds: int  # of training, for each team, all members together
    plan_worlds: int  # of the first pass of its plan
    seconds: float  # of what is left


def estimate(setting: Setting, method: Method, plan: Plan) -> Estimate:
    """Estimate of a method's run, from its settings or from what was observed when it ran before."""
    config = settings_of(setting, method, plan)
    rows, recorded = run_record(setting, method, plan)
    done = max((row["iteration"] for row in rows), default=0) if recorded.get("iterations") == config.iterations else 0
    pace = SECONDS[family(config)] * config.population_size * len(config.seeds) / 3
    if done:
        pace = max(row.get("seconds") or 0.0 for row in rows) / done or pace
    seconds = START_SECONDS + pace * (config.iterations - done)
    return Estimate(training_worlds(config), plan_worlds(config), seconds)


def memory_needed(setting: Setting, method: Method, plan: Plan) -> int | None:
    """Bytes on the device: as observed when it ran before, else estimated. None if its worlds cannot be drawn here."""
    seen = read_json(plan.out / plan.folder(setting, method) / OBSERVED) or {}
    if "memory" in seen:
        return int(seen["memory"] * ROOM) + SPARE
    return _memory(setting, plan, settings_of(setting, method, plan))


def observe(setting: Setting, method: Method, plan: Plan, memory: int) -> None:
    """Keep the memory that a run's program takes, for the next estimate."""
    path = plan.out / plan.folder(setting, method) / OBSERVED
    write_atomically(path, b'{"memory": %d}\n' % memory)


def training_worlds(config: Config) -> int:
    """Worlds that are simulated for a team in training, by all members."""
    return config.iterations * config.num_envs * config.population_size


def plan_worlds(config: Config) -> int:
    """Worlds of one pass of the plan."""
    return config.plan.iterations * config.plan.num_plans * config.plan.num_envs


def family(config: Config) -> str:
    """Which estimate of time applies."""
    if isinstance(config.algorithm, Frozen):
        return "frozen"
    return "on_policy" if isinstance(config.algorithm, PPO) else "off_policy"


def _memory(setting: Setting, plan: Plan, config: Config) -> int | None:
    shape = _shape(setting.name, plan)
    if shape is None:
        return None
    agents, horizon, grid = shape
    rounds = config.max_rounds or horizon
    batch = config.batch_size
    if isinstance(config.algorithm, PPO):
        batch = max(batch, config.num_envs // config.algorithm.num_minibatches)
    members = len(config.seeds) * config.population_size
    learning = FLOATS * batch * agents * config.network.hidden_size
    validation = GRIDS * min(config.validation_episodes, AT_ONCE) * grid
    return SPARE + 4 * (learning + validation) * rounds * members


@cache
def _shape(name: str, plan: Plan) -> tuple[int, int, int] | None:
    """Agents, horizon and numbers in the team's grid of a setting's problem; None without measurements."""
    setting = setting_named(name)
    try:
        problem = plan.scale(setting).problem(**plan.changes(setting))
    except (UserError, OSError):
        return None
    grid = view_shapes(problem, "team").grid
    return problem.agents, problem.horizon, 0 if grid is None else prod(grid.shape)
