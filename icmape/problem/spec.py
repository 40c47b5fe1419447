"""Descriptions of problems in files and on command lines, and how problems are rebuilt from them."""

import hashlib
import inspect
import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import numpy as np

from icmape.errors import UserError
from icmape.imports import check_named, load_object
from icmape.problem.argument_types import check_arguments
from icmape.problem.centralized import MOST, Centralized
from icmape.problem.contract import Problem, arguments
from icmape.problem.entry import problem_classes, problem_name
from icmape.problem.sizes import check_size
from icmape.problem.unreliable import Unreliable

FULL_KIND = re.compile(r"(?P<centralized>centralized-)?(?:unreliable\((?P<rates>[^)]*)\)-)?(?P<kind>.*)", re.S)
"""The adapters of a problem and its kind in one word; names of modules have no hyphen."""
KEYS = {"kind", "arguments", "centralized", "unreliable"}
RATES = {"lost", "silent", "late"}


def describe(problem: Problem, local: bool = True) -> dict[str, Any]:
    """The description that rebuilds this problem: name of the class, arguments, whether it is centralized, and rates of
    failures.

    Arguments that refer to this machine (`Problem.LOCAL`) are included if `local`.
    """
    inner = problem.unwrapped
    values = {n: v for n, v in arguments(inner).items() if local or n not in inner.LOCAL}
    described: dict[str, Any] = {"kind": problem_name(type(inner)), "arguments": values}
    while problem is not inner:
        if isinstance(problem, Centralized):
            described["centralized"] = True
        elif isinstance(problem, Unreliable):
            described["unreliable"] = problem.rates
        else:
            raise UserError(
                f"files cannot name a {type(problem).__name__} around {described['kind']}: give the problem itself"
            )
        problem = problem.problem
    return described


def problem_digest(problem: Problem) -> str:
    """A hash of a problem: its description, the parameters of its prior, its data, and the file of its class if that is
    not part of icmape."""
    digest = hashlib.sha256(json.dumps(describe(problem, local=False), sort_keys=True).encode())
    source = type(problem.unwrapped)
    if not source.__module__.startswith("icmape."):  # the package's own code is hashed as a whole where it matters
        with suppress(OSError, TypeError):
            digest.update(Path(inspect.getfile(source)).read_bytes())
    for leaf in jax.tree.leaves(problem):
        digest.update(np.asarray(leaf).tobytes())
    return digest.hexdigest()[:16]


def build(
    described: dict[str, Any],
    problem: Problem | type[Problem] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Problem:
    """The problem of a description, with some arguments changed.

    A description never causes an import: a class without an entry must be passed as `problem`. A class is built with
    the described arguments; an instance is used unchanged. For a centralized or an unreliable problem, the inner one
    may be passed.
    """
    kind, centralized, rates = described["kind"], is_centralized(described), rates_of(described)
    source = problem_classes().get(kind) if problem is None else problem
    if source is None:
        raise UserError(
            f"its problem {kind} is not part of icmape: give the class with --problem {kind}, or load(..., problem=...)"
        )
    name = problem_name(source if isinstance(source, type) else type(source.unwrapped))
    if name != kind:
        raise UserError(f"its problem is {kind}; given was {name}")
    if isinstance(source, type):
        check_changes(source, {**described["arguments"], **(changes or {})})
        built = check_size(source(**{**source.UNSAID, **described["arguments"], **(changes or {})}))
        return _adapted(built, centralized, rates)
    if changes:
        raise UserError(f"its arguments ({', '.join(changes)}) cannot be changed: the problem was given as it is")
    if source.unwrapped is source:
        return _adapted(source, centralized, rates)
    if centralized != isinstance(source, Centralized):
        wanted = "centralized" if centralized else "with agents apart"
        raise UserError(f"its problem is {kind} {wanted}; given was a {type(source).__name__} one")
    return source


def _adapted(problem: Problem, centralized: bool, rates: Mapping[str, float] | None) -> Problem:
    """A problem with the adapters of a description."""
    problem = problem if rates is None else Unreliable(problem, **rates)
    # its size was checked when the described problem was first built
    return Centralized(problem, limit=MOST) if centralized else problem


def build_named(kind: str, arguments: Mapping[str, Any], named: Collection[str] = ()) -> Problem:
    """The problem of a configuration: that of an entry, or a `module:Class` that the user named, too.

    The kind may begin with adapters, as in `full_kind`.
    """
    inner, adapters = split_kind(kind)
    problem_class = find_class(inner, named)
    described = {"kind": problem_name(problem_class), "arguments": dict(arguments), **adapters}
    try:
        return build(described, problem_class)
    except (TypeError, ValueError) as error:
        raise UserError(f"{kind} does not take these arguments: {error}") from error


def find_class(name: str, named: Collection[str] = ()) -> type[Problem]:
    """The problem class that a configuration names: that of an entry, or one that the user named, too."""
    classes = problem_classes()
    if name in classes:
        return classes[name]
    check_named(name, named, "its problem", "--problem")
    return load_class(name)


def load_class(path: str) -> type[Problem]:
    """The problem class that `module:Class` names."""
    loaded = load_object(path, "--problem")
    if not (isinstance(loaded, type) and issubclass(loaded, Problem)):
        raise UserError(f"--problem {path}: {path.partition(':')[2]} is not a subclass of icmape.Problem")
    return loaded


def check_changes(kind: type[Problem], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """The changes, if each names an argument of the problem and has its type."""
    return check_arguments(kind, problem_name(kind), changes)


def is_centralized(described: dict[str, Any]) -> bool:
    """Whether a description is that of a centralized problem; older files do not have this key."""
    if unknown := set(described) - KEYS:
        raise ValueError(f"unknown {', '.join(sorted(unknown))} beside {', '.join(sorted(KEYS))}")
    if not isinstance(described["kind"], str) or not isinstance(described["arguments"], dict):
        raise ValueError("its kind must be a text, and its arguments values by name")
    centralized = described.get("centralized", False)
    if not isinstance(centralized, bool):
        raise ValueError(f"centralized must be true or false; it is {centralized!r}")
    return centralized


def rates_of(described: dict[str, Any]) -> dict[str, float] | None:
    """The rates of failures in a description; None without any."""
    rates = described.get("unreliable")
    if rates is None:
        return None
    if not isinstance(rates, dict) or set(rates) != RATES:
        raise ValueError(f"unreliable must hold {', '.join(sorted(RATES))}; it is {rates!r}")
    for name, rate in rates.items():
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise ValueError(f"{name} is a probability, from 0 to 1; it is {rate!r}")
    return {name: float(rate) for name, rate in rates.items()}


def full_kind(described: dict[str, Any]) -> str:
    """The kind in one word: bandit, centralized-bandit, or unreliable(lost=0.1,silent=0.0,late=0.0)-bandit."""
    rates = rates_of(described)
    failing = "" if rates is None else f"unreliable({','.join(f'{name}={rate!r}' for name, rate in rates.items())})-"
    return "centralized-" * is_centralized(described) + failing + described["kind"]


def split_kind(full: str) -> tuple[str, dict[str, Any]]:
    """The kind in a full one, and what a description says of its adapters."""
    parts = FULL_KIND.fullmatch(full)
    assert parts is not None  # every text matches
    adapters: dict[str, Any] = {"centralized": parts["centralized"] is not None}
    if parts["rates"] is not None:
        pairs = [part.partition("=") for part in parts["rates"].split(",")]
        try:
            if len(pairs) != len(RATES):
                raise ValueError(f"it has {len(pairs)} values")
            adapters["unreliable"] = rates_of({"unreliable": {name: float(rate) for name, _, rate in pairs}})
        except ValueError as error:
            raise UserError(
                f"{full}: unreliable(...) takes lost, silent and late with a probability each ({error})"
            ) from error
    return parts["kind"], adapters
