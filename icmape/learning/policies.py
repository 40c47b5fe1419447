"""Policies that training is handed."""

from typing import NamedTuple

from icmape.errors import UserError
from icmape.learning.algorithms import Frozen
from icmape.learning.config import Config
from icmape.play.open_loop import Uniform
from icmape.play.policy import LocalPolicy, Policy
from icmape.problem import Problem


class Policies(NamedTuple):
    """A policy to learn from at first, and one that is played as it is; none where there is no need."""

    guide: LocalPolicy | None = None
    frozen: Policy | None = None


def complete(problem: Problem, config: Config, policies: Policies) -> Policies:
    """With uniform actions where the settings ask for these; refused if a policy is missing that they name."""
    if config.guide.policy and policies.guide is None:
        raise UserError(f"guide.policy is {config.guide.policy!r}, but no policy was given: pass the policy itself")
    if isinstance(config.algorithm, Frozen) and policies.frozen is None:
        if config.algorithm.policy != "uniform":
            raise UserError(f"algorithm.policy is {config.algorithm.policy!r}, but no policy was given: pass it")
        return policies._replace(frozen=Uniform(problem.agents, problem.actions + 1))
    return policies
