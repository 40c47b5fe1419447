"""Readings that never came, in data that is given to a team."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PyTree

from icmape.errors import UserError
from icmape.problem import Centralized, Problem, Unreliable
from icmape.problem.unreliable import Received, UnreliableMemory


class Marks(NamedTuple):
    """Who acted and whose reading arrived; leading axes as those of the observations."""

    acted: Bool[np.ndarray, "*batch agents"]
    arrived: Bool[np.ndarray, "*batch agents"]


def says_missing(problem: Problem) -> bool:
    """Whether observations of this problem say what is missing."""
    return isinstance(problem.problem if isinstance(problem, Centralized) else problem, Unreliable)


def takes_missed(policy: Any) -> bool:
    """Whether a policy may be told that a reading is missing."""
    return bool(getattr(policy, "takes_missed", False))


def check_takes_missed(policy: Any) -> None:
    """Raise `UserError` for a policy that keeps its own account of readings."""
    if not takes_missed(policy):
        raise UserError(
            f"the policy {getattr(policy, 'kind', type(policy).__name__)} keeps its own account of readings, none of "
            "which may be missing; learned teams and fixed schedules take missing readings"
        )


def inner_agents(problem: Problem) -> tuple[int, ...]:
    """The axis of the agents of which a centralized one has the readings; none for others."""
    return (problem.problem.agents,) if isinstance(problem, Centralized) else ()


def received(problem: Problem, reading: PyTree, marks: Marks) -> PyTree:
    """Readings as observations of a problem: with the marks, if it says what is missing."""
    if not says_missing(problem):
        return reading
    acted, arrived = jnp.asarray(marks.acted), jnp.asarray(marks.arrived)
    return Received(reading, acted, arrived, jnp.zeros(acted.shape, bool))


def remembered(problem: Problem, memory: PyTree) -> UnreliableMemory:
    """The memory of an agent of a problem without missing readings, as that of one with them."""
    axes = inner_agents(problem)
    return UnreliableMemory(memory, jnp.ones(axes, bool), jnp.zeros(axes, bool))


def fill(layout: PyTree, observations: Any, axes: tuple[int, ...]) -> tuple[Any, Bool[np.ndarray, "*axes"]]:
    """Observations with zeros instead of None, and what arrived. `layout` holds arrays of a single reading."""
    arrived = np.ones(axes, bool)

    def fill_leaf(like: Array, values: Any) -> Any:
        if not _has_none(values, len(axes)):
            return values
        filled, here = _fill(values, axes, np.zeros(like.shape, like.dtype))
        arrived[...] &= here
        return filled

    return jax.tree.map(fill_leaf, layout, observations, is_leaf=lambda x: x is None), arrived


def split_actions(actions: Any, agents: int) -> tuple[Any, Bool[np.ndarray, "rounds agents"] | None]:
    """Actions with 0 instead of None, and who acted; None if all did."""
    if not _has_none(actions, 2):
        return actions, None
    filled, acted = _fill(actions, (len(actions), agents), np.zeros((), np.int32))
    return filled, acted


def marks_of(
    problem: Problem, acted: Bool[np.ndarray, "rounds agents"] | None, arrived: Bool[np.ndarray, "rounds agents ..."]
) -> Marks:
    """The marks of rounds, with those of the inner agents of a centralized problem."""
    if acted is None:
        return Marks(np.ones(arrived.shape, bool), arrived)
    spread = np.broadcast_to(acted.reshape(*acted.shape, *(1,) * (arrived.ndim - 2)), arrived.shape)
    if np.any(arrived & ~spread):
        raise UserError("a reading needs an action: where an action is None, its reading must be None too")
    return Marks(spread, arrived)


def padded(marks: Marks, horizon: int) -> Marks:
    """Marks of the rounds after the first observation, which arrived, up to the horizon."""

    def pad(rows: np.ndarray) -> np.ndarray:
        out = np.zeros((horizon, *rows.shape[1:]), bool)
        out[0], out[1 : len(rows) + 1] = True, rows
        return out

    return Marks(*map(pad, marks))


def _has_none(values: Any, depth: int) -> bool:
    if values is None:
        return True
    return depth > 0 and isinstance(values, list | tuple) and any(_has_none(value, depth - 1) for value in values)


def _fill(values: Any, axes: tuple[int, ...], nothing: np.ndarray) -> tuple[Any, np.ndarray]:
    if values is None:
        return np.zeros((*axes, *nothing.shape), nothing.dtype), np.zeros(axes, bool)
    if not axes or not isinstance(values, list | tuple):
        return values, np.ones(axes, bool)
    if len(values) != axes[0]:
        raise UserError(f"{len(values)} entries where {axes[0]} are expected; a missing one is None")
    rows = [_fill(value, axes[1:], nothing) for value in values]
    return [filled for filled, _ in rows], np.stack([here for _, here in rows])
