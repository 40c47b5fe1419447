"""Policies without learning that a problem provides by name, for the frozen learner. Team files store the name only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from icmape.errors import UserError
from icmape.play.policy import Policy
from icmape.problem import Problem
from icmape.problem.entry import entries


@dataclass(frozen=True)
class NamedPolicy:
    """A policy in the entry of a problem."""

    summary: str
    make: Callable[[Any], Policy]
    """Builds the policy from the problem."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Changed settings for training the inference network on its samples."""


def named_policies() -> dict[str, NamedPolicy]:
    """The named policies of all problems."""
    policies: dict[str, NamedPolicy] = {}
    for entry in entries().values():
        for name, policy in entry.part("policies", {}).items():
            if policies.setdefault(name, policy) != policy:
                raise UserError(f"two problems name a policy {name}: the second is {entry.name}")
    return policies


def named_policy(name: str, problem: Problem) -> Policy | None:
    """The policy of this name for a problem; None if no problem has one of this name."""
    having = [entry for entry in entries().values() if name in entry.part("policies", {})]
    for entry in having:
        if isinstance(problem, entry.problem):
            policy: Policy = entry.part("policies", {})[name].make(problem)
            return policy
    if having:
        names = " or ".join(entry.name for entry in having)
        raise UserError(f"the policy {name} is for {names}, agents apart; given was a {type(problem).__name__}")
    return None
