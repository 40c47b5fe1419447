"""Whether a policy that somebody wrote can play a problem."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from icmape.errors import UserError
from icmape.play.policy import LocalPolicy, Round
from icmape.play.team import Team
from icmape.problem import Problem


def check_own(team: Team) -> None:
    """The same for a team whose policy is not part of icmape."""
    if not type(team.policy).__module__.startswith("icmape."):
        check_policy(team.problem, team.policy, f"the policy {type(team.policy).__name__}")


def check_policy(problem: Problem, policy: Any, name: str) -> None:
    """Refuse what does not give a score for every action and STOP of every agent, or whose state changes its layout."""
    if isinstance(policy, LocalPolicy) and policy.agents != problem.agents:
        raise UserError(f"{name} is for {policy.agents} agents; {type(problem).__name__} has {problem.agents}")
    try:
        before, after, scores = jax.eval_shape(lambda: _first_round(problem, policy))
    except UserError:
        raise
    except Exception as error:  # somebody else's code may fail in any way: name it
        raise UserError(f"{name} could not decide in a first round: {type(error).__name__}: {error}") from error
    expected = (problem.agents, problem.actions + 1)
    if scores.shape != expected or not jnp.issubdtype(scores.dtype, jnp.floating):
        raise UserError(
            f"{name} gives scores of shape {scores.shape} and type {scores.dtype}; expected are floats of shape "
            f"{expected}: for every agent one score an action, and that of STOP last"
        )
    if _layout(before) != _layout(after):
        raise UserError(f"the state of {name} changes its structure, shapes or types when it decides")


def _first_round(problem: Problem, policy: Any) -> tuple[PyTree, PyTree, Array]:
    key, agents = jax.random.key(0), jnp.arange(problem.agents)
    _, first = problem.start(problem.sample(key=key), key=key)
    memories = jax.vmap(problem.init_memory)(agents, first)
    views = jax.vmap(problem.features)(memories)
    before = policy.start()
    seen = Round(jnp.int32(0), views, jnp.full(problem.agents, -1), first, memories)
    return before, *policy.decide(before, seen, key=key)


def _layout(tree: PyTree) -> tuple:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves]
