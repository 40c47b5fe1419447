"""The plan: the best schedule that policy gradient finds, for any problem. What a non-adaptive team can do."""

import logging
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
log = logging.getLogger("icmape")


def plan_team(problem: Problem, delta: float) -> Team:
    """Everyone follows the plan and nobody looks; it stops at the end of the horizon.

    The answer is the exact posterior's, or where there is none that of the network that learned beside the plan.
    """
    found = _found(Task(problem, delta))
    inference = NetworkInference(found.inference) if problem.posterior == "none" else ExactInference()
    return Team(problem, TablePolicy(found.table), FixedLength(problem.horizon - 1), inference, delta)


@cache
def _found(task: Task) -> PlanFound:
    """The best of several plans, by one seed."""
    config = override(with_algorithm(Config(), "ppo"), {"delta": task.delta, **SETTINGS})
    return plan_of(find_plans(task.problem, config, log.info), 0)
