"""The baseline `plan`: the best non-adaptive schedule by policy gradient, for any problem."""

from functools import cache

from icmape.baselines.rules import Task
from icmape.learning.config import Config, with_algorithm
from icmape.learning.plan import PlanFound, TablePolicy
from icmape.learning.planning import find_plans, plan_of
from icmape.play.inference import ExactInference, NetworkInference
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.settings import override

SETTINGS = {"plan.iterations": 300, "plan.num_envs": 256, "plan.ent_coef": 2e-3, "posterior": "auto"}


def plan_team(problem: Problem, delta: float) -> Team:
    """All agents follow the plan, independent of observations, until the end of the horizon.

    The answer is that of the exact posterior; without one, of the network that was trained with the plan.
    """
    plan = _best_plan(Task(problem, delta))
    inference = NetworkInference(plan.inference) if problem.posterior == "none" else ExactInference()
    return Team(problem, TablePolicy(plan.table), FixedLength(problem.horizon - 1), inference, delta)


@cache
def _best_plan(task: Task) -> PlanFound:
    """The best of several plans, of one seed."""
    config = override(with_algorithm(Config(), "ppo"), {"delta": task.delta, **SETTINGS})
    return plan_of(find_plans(task.problem, config), 0)
