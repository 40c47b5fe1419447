"""Policy objects for the names in settings. Learning receives the objects."""

from collections.abc import Collection
from typing import Any

from icmape.baselines.registry import baseline_names, baselines_for, teaching_team
from icmape.errors import UserError
from icmape.imports import call_own, check_named, is_path
from icmape.learning.algorithms import Frozen
from icmape.learning.config import Config
from icmape.learning.phases import TEACHER, begin
from icmape.learning.policies import Policies
from icmape.learning.teacher import WithoutStop
from icmape.play.check_policy import check_policy
from icmape.play.named_policies import named_policy
from icmape.play.open_loop import Uniform
from icmape.play.policy import LocalPolicy, Policy
from icmape.play.stop import LearnedStop
from icmape.play.team import Team
from icmape.play.team_files import load
from icmape.problem import Problem
from icmape.problem.spec import describe


def find_policies(
    problem: Problem, config: Config, teacher: LocalPolicy | None = None, *, named: Collection[str] = ()
) -> Policies:
    """The policies that training needs: the teacher (passed or named), and the fixed policy of a frozen learner.

    A teacher `module:Class` is imported only if it is among those that the user `named`.
    """
    return Policies(find_teacher(problem, config, teacher, named=named), find_frozen(problem, config))


def find_frozen(problem: Problem, config: Config) -> Policy | None:
    """The fixed policy that the settings name, if any: uniform, one of the problem, or that of a team file."""
    if not isinstance(config.algorithm, Frozen):
        return None
    name = config.algorithm.policy
    if name == "uniform":
        return Uniform(problem.agents, problem.actions + 1)
    named = named_policy(name, problem)
    if named is not None:
        return named
    team = load(name, type(problem.unwrapped))
    trained_on, wanted = describe(team.problem, local=False), describe(problem, local=False)
    if trained_on != wanted:
        raise UserError(f"the policy in {name} is for {trained_on}; the problem to train on is {wanted}")
    policy: Policy = load(name, problem).policy
    return policy


def find_teacher(
    problem: Problem, config: Config, passed: LocalPolicy | None = None, *, named: Collection[str] = ()
) -> LocalPolicy | None:
    """The policy that was passed, or that the settings name: a baseline, that of a team file, or module:Class."""
    name = config.teacher.policy
    if passed is None and not name:
        return None
    begin("teacher", name, TEACHER)
    if passed is None and is_path(name):
        check_named(name, named, "the teacher", "--teacher.policy")
    if passed is not None or is_path(name):
        teacher = call_own(name, "teacher.policy", problem) if passed is None else passed
        return _followed(config, *_own_teacher(problem, name or type(passed).__name__, teacher))
    try:
        is_baseline = name in baseline_names()
        team = teaching_team(name, problem, config.delta, config.teacher.stop) if is_baseline else load(name, problem)
    except UserError as error:
        raise UserError(
            f"teacher.policy {name!r} cannot teach here: {error}. Without a teacher: --algorithm ppo; teachers are "
            f"files of teams for this problem, module:Class of your own, and the baselines "
            f"{', '.join(baselines_for(problem)) or '(none)'}"
        ) from error
    return _followed(config, _local(name, team.policy), isinstance(team.stop, LearnedStop))


def _followed(config: Config, policy: LocalPolicy, stops: bool) -> LocalPolicy:
    return policy if config.teacher.stop and stops else WithoutStop(policy)


def _local(name: str, policy: Any) -> LocalPolicy:
    if not isinstance(policy, LocalPolicy):
        raise UserError(f"the teacher {name} reads everyone's data: agents that see only their own cannot follow it")
    return policy


def _own_teacher(problem: Problem, name: str, teacher: Any) -> tuple[LocalPolicy, bool]:
    """The policy of a user-defined teacher (a policy or a team), and whether it chooses STOP."""
    if isinstance(teacher, Team):
        policy, stops = _local(name, teacher.policy), isinstance(teacher.stop, LearnedStop)
    elif isinstance(teacher, LocalPolicy):
        policy, stops = teacher, bool(getattr(teacher, "stops", True))
    else:
        raise UserError(
            f"the teacher {name} is {type(teacher).__name__}; expected an icmape.LocalPolicy or a Team, or what gives "
            "one when it is called with the problem"
        )
    check_policy(problem, policy, f"the teacher {name}")
    return policy, stops
