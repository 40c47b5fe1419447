"""Policies that training is handed."""

from typing import NamedTuple

from icmape.errors import UserError
from icmape.learning.algorithms import Frozen
from icmape.learning.config import Config
from icmape.play.policy import LocalPolicy, Policy


class Policies(NamedTuple):
    """A policy to learn from at first, and one that is played as it is; none where there is no need."""

    teacher: LocalPolicy | None = None
    frozen: Policy | None = None


def check_policies(config: Config, policies: Policies) -> None:
    """Refuse to train without a policy that the settings name."""
    if config.teacher.policy and policies.teacher is None:
        raise UserError(f"teacher.policy is {config.teacher.policy!r}, but no policy was given: pass the policy itself")
    frozen = config.algorithm.policy if isinstance(config.algorithm, Frozen) else "uniform"
    if frozen != "uniform" and policies.frozen is None:
        raise UserError(f"algorithm.policy is {frozen!r}, but no policy was given: pass the policy itself")
