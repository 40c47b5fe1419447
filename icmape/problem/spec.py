"""Problems in files and on command lines: what is written of one, and how it is made again. Nowhere else."""

import hashlib
import inspect
import json
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from icmape.errors import UserError, nearest
from icmape.imports import load_object
from icmape.problem.centralized import MOST, Centralized
from icmape.problem.contract import Problem, arguments
from icmape.problem.entry import problem_classes, problem_name

PREFIX = "centralized-"  # no kind begins so: a hyphen is in no name of a module
KEYS = {"kind", "arguments", "centralized"}


def describe(problem: Problem, local: bool = True) -> dict[str, Any]:
    """What makes this problem again: its class by name, the arguments, and whether its agents are seen as one.

    Arguments that name things of this machine are left out unless they are `local`.
    """
    inner = problem.unwrapped
    given = {n: v for n, v in arguments(inner).items() if local or n not in inner.LOCAL}
    described = {"kind": problem_name(type(inner)), "arguments": given}
    return described if inner is problem else {**described, "centralized": True}


def problem_digest(problem: Problem) -> str:
    """A hash of a problem with all that its worlds come from: its description, its prior's parameters, its data."""
    found = hashlib.sha256(json.dumps(describe(problem, local=False), sort_keys=True).encode())
    for leaf in jax.tree.leaves(problem):
        found.update(np.asarray(leaf).tobytes())
    return found.hexdigest()[:16]


def build(
    described: dict[str, Any],
    given: Problem | type[Problem] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Problem:
    """The problem of a description, with some arguments changed.

    Nothing is imported on a description's word: a class without an entry must be given. It is then built with the
    described arguments; an instance is taken as it is. What is given may be the problem inside a centralized one.
    """
    kind, centralized = described["kind"], is_centralized(described)
    known = problem_classes().get(kind) if given is None else given
    if known is None:
        raise UserError(
            f"its problem {kind} is not part of icmape: give the class with --problem {kind}, or load(..., problem=...)"
        )
    name = problem_name(known if isinstance(known, type) else type(known.unwrapped))
    if name != kind:
        raise UserError(f"its problem is {kind}; given was {name}")
    if isinstance(known, type):
        made = known(**{**known.UNSAID, **described["arguments"], **check_changes(known, changes or {})})
        # described was a problem that somebody had built: whether it is too large was asked then
        return Centralized(made, limit=MOST) if centralized else made
    if changes:
        raise UserError(f"its arguments ({', '.join(changes)}) cannot be changed: the problem was given as it is")
    if known.unwrapped is known:
        return Centralized(known, limit=MOST) if centralized else known
    if not centralized:
        raise UserError(f"its problem is {kind} with agents apart; given was a {type(known).__name__} one")
    return known


def build_named(kind: str, arguments: Mapping[str, Any]) -> Problem:
    """The problem of a name that a person gave: one with an entry, or module:Class; "centralized-" may precede it."""
    inner = kind.removeprefix(PREFIX)
    found = find_class(inner)
    described = {"kind": problem_name(found), "arguments": dict(arguments), "centralized": inner != kind}
    try:
        return build(described, found)
    except (TypeError, ValueError) as error:
        raise UserError(f"{kind} does not take these arguments: {error}") from error


def find_class(name: str) -> type[Problem]:
    """The class that a person named: by its entry, or as module:Class."""
    known = problem_classes()
    return known[name] if name in known else load_class(name)


def load_class(path: str) -> type[Problem]:
    """The problem class that `module:Class` names."""
    found = load_object(path, "--problem")
    if not (isinstance(found, type) and issubclass(found, Problem)):
        raise UserError(f"--problem {path}: {path.partition(':')[2]} is not a subclass of icmape.Problem")
    return found


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
