"""Policies that a problem alone makes, by name: a frozen learner plays them, and a team's file need not hold them."""

from collections.abc import Callable, Mapping
from typing import Any

from icmape.errors import UserError
from icmape.presets import problem_name
from icmape.problems import Hotspot, Problem, Signal
from icmape.references.prior_map import PRIOR_MAPS
from icmape.references.thompson import THOMPSON

POLICIES: dict[type[Problem], Mapping[str, Callable[[Any], Any]]] = {
    Signal: THOMPSON,
    Hotspot: {name: policy for name, (_, policy) in PRIOR_MAPS.items()},
}


def named_policy(name: str, problem: Problem) -> Any:
    """The policy of this name for a problem; none if no problem has one of this name."""
    kinds = [kind for kind, policies in POLICIES.items() if name in policies]
    if not kinds:
        return None
    for kind in kinds:
        if isinstance(problem, kind):
            return POLICIES[kind][name](problem)
    known = " or ".join(problem_name(kind) for kind in kinds)
    raise UserError(f"the policy {name} is for {known}, agents apart; given was a {type(problem).__name__}")
