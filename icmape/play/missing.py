"""Readings that never came, in data that is given to a team."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, PyTree

from icmape.errors import UserError
from icmape.play.inference import ExactInference, NetworkInference
from icmape.problem import Centralized, Problem, Unreliable
from icmape.problem.unreliable import Received, UnreliableMemory, takes_missing
from icmape_agent.missing import check_marks


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


def check_inference(inference: Any) -> None:
    """Raise `UserError` for an inference that reads no rounds with missing readings."""
    if not isinstance(inference, NetworkInference | ExactInference):
        raise UserError(f"the inference by a {inference.kind} takes no missing readings")


def answers_missed(problem: Problem, policy: Any, inference: Any) -> bool:
    """Whether the agents and the inference of a team of this problem take missing readings."""
    return takes_missed(policy) and infers_missed(problem, inference)


def infers_missed(problem: Problem, inference: Any) -> bool:
    """Whether an inference for this problem takes missing readings."""
    if isinstance(inference, ExactInference):
        return takes_missing(problem).posterior != "none"
    return isinstance(inference, NetworkInference)


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


def marks_of(acted: Bool[np.ndarray, "rounds agents"], arrived: Bool[np.ndarray, "rounds agents ..."]) -> Marks:
    """The marks of rounds, with those of the inner agents of a centralized problem."""
    spread = np.broadcast_to(acted.reshape(*acted.shape, *(1,) * (arrived.ndim - 2)), arrived.shape)
    check_marks(spread, arrived)
    return Marks(spread, arrived)


def padded(marks: Marks, horizon: int) -> Marks:
    """Marks of the rounds after the first observation, which arrived, up to the horizon."""

    def pad(rows: np.ndarray) -> np.ndarray:
        out = np.zeros((horizon, *rows.shape[1:]), bool)
        out[0], out[1 : len(rows) + 1] = True, rows
        return out

    return Marks(*map(pad, marks))
