"""Problems in files: what is written of one, and how it is made again."""

import inspect
from collections.abc import Mapping
from typing import Any

from icmape.errors import UserError, nearest
from icmape.presets import PROBLEMS, problem_name
from icmape.problems import Centralized, Problem, arguments
from icmape.problems.adapters import MOST

PREFIX = "centralized-"  # no kind begins so: a hyphen is in no name of a module
KEYS = {"kind", "arguments", "centralized"}


def describe(problem: Problem, local: bool = True) -> dict[str, Any]:
    """What makes this problem again: its class by name, the arguments, and whether its agents are seen as one.

    Arguments that name things of this machine are left out unless they are `local`.
    """
    if isinstance(problem, Centralized):
        return {**describe(problem.problem, local), "centralized": True}
    given = {n: v for n, v in arguments(problem).items() if local or n not in problem.LOCAL}
    return {"kind": problem_name(type(problem)), "arguments": given}


def build(
    described: dict[str, Any],
    given: Problem | type[Problem] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Problem:
    """The problem of a description, with some arguments changed.

    Nothing is imported on a description's word: a class that is not part of icmape must be given. It is then built with
    the described arguments; an instance is taken as it is. What is given may be the problem inside a centralized one.
    """
    kind, centralized = described["kind"], is_centralized(described)
    known = PROBLEMS.get(kind) if given is None else given
    if known is None:
        raise UserError(
            f"its problem {kind} is not part of icmape: give the class with --problem {kind}, or load(..., problem=...)"
        )
    inner = known.problem if isinstance(known, Centralized) else known
    name = problem_name(inner if isinstance(inner, type) else type(inner))
    if name != kind:
        raise UserError(f"its problem is {kind}; given was {name}")
    if isinstance(known, Problem) and changes:
        raise UserError(f"its arguments ({', '.join(changes)}) cannot be changed: the problem was given as it is")
    if isinstance(known, Centralized):
        if not centralized:
            raise UserError(f"its problem is {kind} with agents apart; given was a Centralized one")
        return known
    if isinstance(known, Problem):
        made = known
    else:
        made = known(**{**known.UNSAID, **described["arguments"], **check_changes(known, changes or {})})
    # described was a problem that somebody had built: whether it is too large was asked then
    return Centralized(made, limit=MOST) if centralized else made


def check_changes(kind: type[Problem], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse changes of what is no argument of a problem."""
    known = inspect.signature(kind).parameters
    for name in changes:
        if name not in known:
            raise UserError(f"{problem_name(kind)} has no argument {name!r}: {nearest(name, known)}")
    return changes


def is_centralized(described: dict[str, Any]) -> bool:
    """Whether a description is that of N agents seen as one; files from before there was such a thing do not say."""
    if unknown := set(described) - KEYS:
        raise ValueError(f"unknown {', '.join(sorted(unknown))} beside {', '.join(sorted(KEYS))}")
    found = described.get("centralized", False)
    if not isinstance(found, bool):
        raise ValueError(f"centralized must be true or false; it is {found!r}")
    return found


def full_kind(described: dict[str, Any]) -> str:
    """The kind in one word: bandit, or centralized-bandit."""
    return PREFIX * is_centralized(described) + described["kind"]
