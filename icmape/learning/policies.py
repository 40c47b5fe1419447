"""Policy objects that training receives."""

from typing import NamedTuple

from icmape.errors import UserError
from icmape.learning.algorithms import Frozen
from icmape.learning.config import Config
from icmape.play.policy import LocalPolicy, Policy


class Policies(NamedTuple):
    """The teacher to imitate, and the fixed policy of the frozen learner; None where not needed."""

    teacher: LocalPolicy | None = None
    frozen: Policy | None = None


def check_policies(config: Config, policies: Policies) -> None:
    """Raise `UserError` if the settings name a policy that was not passed."""
    if config.teacher.policy and policies.teacher is None:
        raise UserError(f"teacher.policy is {config.teacher.policy!r}, but no policy was given: pass the policy itself")
    frozen = config.algorithm.policy if isinstance(config.algorithm, Frozen) else "uniform"
    if frozen != "uniform" and policies.frozen is None:
        raise UserError(f"algorithm.policy is {frozen!r}, but no policy was given: pass the policy itself")
