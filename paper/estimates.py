"""What a training run is expected to take: simulated worlds, device memory and time."""

from functools import cache
from math import prod
from typing import NamedTuple

from icmape.errors import UserError
from icmape.evaluation.results import read_json
from icmape.io import write_atomically
from icmape.learning.algorithms import PPO, Frozen
from icmape.learning.config import Config
from icmape.learning.inference_loss import AT_ONCE
from icmape.networks.inference_kinds import inference_kind
from icmape.networks.shapes import view_shapes
from paper.experiments import Method, Setting, setting_named
from paper.training import plan_to_find, settings_of
from paper.work_plan import Plan, run_record

GIB = 2**30
OBSERVED = "observed.json"
FLOATS = 24.0  # for each prefix of an episode, agent (and the team) and unit of width
MAP_FLOATS = {"pairwise": 33.0}  # for each prefix and number in the team's grid, by the kind of inference network
MOST_MAP_FLOATS = 77.0  # of the other kinds
"""What a program takes at once, in numbers of 32 bits: fitted to what programs took on an H200 with jax 0.11.2, three
seeds each. A map's memory is that of its inference network.

- Bandits, GiB by XLA's count: A3P5 td3 1.8, ppo 1.8, ours 1.8, threshold and random 3.0, central-td3 1.3, td3-paper
  4.4; A5P3 td3 2.1, vdn 2.0, iql 1.8, ours 1.9, random 3.0. Before its plan is found, a run's episodes may be as long
  as the horizon, so its estimate is up to three times as large. The memory of bandits' plans is XLA's count on a CPU.
- Signal (correlating): td3 13.6; random 18.5, plans of 8 rounds 7.4 and of 16 rounds 13.9 by the allocations that
  failed.
- Nitrate (pairwise): td3 2.2, vdn and iql 1.5, random and gp-map 6.8.
"""
SPARE = GIB  # for compiling
ROOM = 1.25  # for programs besides the training step, and for what is not known
START_SECONDS = 90.0  # to load and to compile
PLAN_SECONDS = 120.0  # to find the plan, of a run that does
SECONDS = {"on_policy": 0.5, "off_policy": 0.36, "frozen": 0.22}
MAP_SECONDS = {"on_policy": 0.8, "off_policy": 0.55, "frozen": 0.5}
"""An iteration of three seeds at full size while eight to twelve runs share one H200 with MPS. Without maps: on-policy
0.37 to 0.75, off-policy 0.2 to 0.6, frozen 0.19 to 0.26. With maps: off-policy 0.3 (nitrate vdn) to 0.75 (signal td3),
frozen 0.4 to 0.6; on-policy was not measured."""


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
    maps = (shape := _shape(setting.name, plan)) is None or shape.grid > 0
    pace = (MAP_SECONDS if maps else SECONDS)[family(config)] * config.population_size * len(config.seeds) / 3
    if done:
        pace = max(row.get("seconds") or 0.0 for row in rows) / done or pace
    finds = not done and config.plan.iterations > 0
    seconds = START_SECONDS + (PLAN_SECONDS if finds else 0.0) + pace * (config.iterations - done)
    return Estimate(training_worlds(config), plan_worlds(config), seconds)


def memory_needed(setting: Setting, method: Method, plan: Plan) -> int | None:
    """Bytes on the device: training as observed when it ran before, else estimated; and the plan, if the run is to find
    it. None if its worlds cannot be drawn here.
    """
    config = settings_of(setting, method, plan)
    seen = read_json(plan.out / plan.folder(setting, method) / OBSERVED) or {}
    shape = _shape(setting.name, plan)
    if shape is None and "memory" not in seen:
        return None
    training = int(seen["memory"]) if "memory" in seen else _training_bytes(_of_team(shape, method), config)
    path = plan_to_find(setting.name, method.role, plan) if shape else None
    planning = _plan_bytes(_of_team(shape, method), config) if path and not path.exists() else 0
    return int(max(training, planning) * ROOM) + SPARE


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


class Shape(NamedTuple):
    """What the memory of a program depends on."""

    agents: int
    horizon: int
    grid: int  # numbers in the team's grid
    kind: str  # of the inference network over maps


def _training_bytes(shape: Shape, config: Config) -> int:
    """Of the larger one: a gradient step, or a validation."""
    batch = max(config.batch_size, AT_ONCE)
    if isinstance(config.algorithm, PPO):
        batch = max(batch, config.num_envs // config.algorithm.num_minibatches)
    if isinstance(config.algorithm, Frozen) and shape.grid:
        batch = config.batch_size  # validated without the maps of whole episodes
    whole = isinstance(config.algorithm, Frozen) or config.stopping == "threshold"  # judged up to the horizon
    rounds = shape.horizon if whole else config.max_rounds or shape.horizon
    return _bytes(shape, config, batch * rounds * config.population_size)


def _plan_bytes(shape: Shape, config: Config) -> int:
    """Of a gradient step of the longer schedules: they are doubled once if need be."""
    plan = config.plan
    rounds = min(2 * plan.init_rounds, shape.horizon - 1)
    team = shape._replace(agents=1)  # schedules have no networks of agents
    return _bytes(team, config, plan.num_plans * plan.num_envs // plan.gradient_steps * (rounds + 1))


def _bytes(shape: Shape, config: Config, prefixes: int) -> int:
    """Of so many prefixes of episodes at once, for each seed."""
    floats = FLOATS * config.network.hidden_size * (shape.agents + 1)
    if shape.grid:
        floats = MAP_FLOATS.get(shape.kind, MOST_MAP_FLOATS) * shape.grid
    return int(4 * floats * prefixes * len(config.seeds))


def _of_team(shape: Shape | None, method: Method) -> Shape:
    assert shape is not None
    return shape._replace(agents=1) if method.centralized else shape


@cache
def _shape(name: str, plan: Plan) -> Shape | None:
    """That of a setting's problem; None without measurements."""
    setting = setting_named(name)
    try:
        problem = plan.scale(setting).problem(**plan.changes(setting))
    except (UserError, OSError):
        return None
    grid = view_shapes(problem, "team").grid
    kind = inference_kind(problem, "default")
    return Shape(problem.agents, problem.horizon, 0 if grid is None else prod(grid.shape), kind)
