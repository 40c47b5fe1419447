"""Policies that a problem makes without learning, by name: a frozen learner plays them, and a team's file need not
hold them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from icmape.errors import UserError
from icmape.play.policy import Policy
from icmape.problem import Problem
from icmape.problem.entry import entries


@dataclass(frozen=True)
class NamedPolicy:
    """What an entry says of such a policy."""

    summary: str
    make: Callable[[Any], Policy]
    """From the problem."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of training the inference network on what it samples, where they differ from the usual ones."""


def named_policies() -> dict[str, NamedPolicy]:
    """All of them, of whatever problem."""
    return {name: policy for entry in entries().values() for name, policy in entry.part("policies", {}).items()}


def named_policy(name: str, problem: Problem) -> Policy | None:
    """The policy of this name for a problem; none if no problem has one of this name."""
    having = [entry for entry in entries().values() if name in entry.part("policies", {})]
    for entry in having:
        if isinstance(problem, entry.problem):
            made: Policy = entry.part("policies", {})[name].make(problem)
            return made
    if having:
        known = " or ".join(entry.name for entry in having)
        raise UserError(f"the policy {name} is for {known}, agents apart; given was a {type(problem).__name__}")
    return None
