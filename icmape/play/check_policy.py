"""Checks of policies that are not part of icmape."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from icmape.errors import UserError
from icmape.play.policy import LocalPolicy, Round
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.check import layout


def check_own(team: Team) -> None:
    """Check the policy of a team, unless it is part of icmape."""
    if not type(team.policy).__module__.startswith("icmape."):
        check_policy(team.problem, team.policy, f"the policy {type(team.policy).__name__}")


def check_policy(problem: Problem, policy: Any, name: str) -> None:
    """Raise `UserError` unless a policy scores all actions and STOP of each agent and its state keeps its layout."""
    if isinstance(policy, LocalPolicy) and policy.agents != problem.agents:
        raise UserError(f"{name} is for {policy.agents} agents; {type(problem).__name__} has {problem.agents}")
    try:
        before, after, scores = jax.eval_shape(lambda: _first_round(problem, policy))
    except UserError:
        raise
    except Exception as error:  # the user's code may raise anything: report it
        raise UserError(f"{name} could not decide in a first round: {type(error).__name__}: {error}") from error
    expected = (problem.agents, problem.actions + 1)
    if scores.shape != expected or not jnp.issubdtype(scores.dtype, jnp.floating):
        raise UserError(
            f"{name} gives scores of shape {scores.shape} and type {scores.dtype}; expected are floats of shape "
            f"{expected}: for every agent one score an action, and that of STOP last"
        )
    if layout(before) != layout(after):
        raise UserError(f"the state of {name} changes its structure, shapes or types when it decides")


def _first_round(problem: Problem, policy: Any) -> tuple[PyTree, PyTree, Array]:
    key, agents = jax.random.key(0), jnp.arange(problem.agents)
    _, first = problem.start(problem.sample(key=key), key=key)
    memories = jax.vmap(problem.init_memory)(agents, first)
    views = jax.vmap(problem.features)(memories)
    before = policy.start()
    seen = Round(jnp.int32(0), views, jnp.full(problem.agents, -1), first, memories)
    return before, *policy.decide(before, seen, key=key)
