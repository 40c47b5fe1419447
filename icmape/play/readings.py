"""The gate for readings: what agents did and saw is checked before a team uses it.

Shape, type, range and finiteness are those of the problem (`Problem.observation_range`). The checks are those of
`icmape_agent.readings`, which agents without JAX use.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Integer, PyTree

from icmape.play.missing import inner_agents
from icmape.play.rollout import Episode
from icmape.problem import Problem
from icmape.problem.ranges import observation_layout, observation_parts, same_structure
from icmape.problem.unreliable import reliable
from icmape_agent.readings import Gate as PlainGate
from icmape_agent.readings import Sizes, refuse_masked

__all__ = ["Gate", "check_allowed", "refuse_masked"]


class Gate(PlainGate):
    """Checks the actions and observations of one problem, and stores observations in its types and its layout.

    Those of an unreliable problem are those of the problem inside: what is missing of them is None.
    """

    def __init__(self, problem: Problem):
        problem = reliable(problem)
        joint = observation_layout(problem)
        self.problem, self._structure = problem, jax.tree.structure(joint)
        sizes = Sizes(problem.agents, problem.actions, problem.horizon)
        parts = observation_parts(problem.observation_range, joint)
        numbered = jax.tree.unflatten(self._structure, range(len(parts)))
        layout, inner = plain_layout(numbered), inner_agents(problem)
        super().__init__(type(problem).__name__, sizes, parts, layout, problem.shows_first, inner)

    def structured(self, arrays: list[np.ndarray]) -> PyTree:
        """Observations in the layout of the problem."""
        return jax.tree.unflatten(self._structure, arrays)

    def flat(self, observations: PyTree) -> list[np.ndarray]:
        """The arrays of observations."""
        return [np.asarray(leaf) for leaf in jax.tree.leaves(observations)]


def plain_layout(numbered: PyTree) -> Any:
    """The layout of an observation, from one whose arrays are numbered."""
    if numbered is None or isinstance(numbered, int):
        return numbered
    if isinstance(numbered, tuple | list):
        return tuple(plain_layout(part) for part in numbered)
    if isinstance(numbered, dict):
        return {name: plain_layout(part) for name, part in numbered.items()}
    return _node(numbered)


def _node(numbered: PyTree) -> Callable[[Any], list[Any] | None]:
    """The arrays of any other node, such as a module."""

    def arrays(given: Any) -> list[Any] | None:
        same = type(given) is type(numbered) and same_structure(given, numbered)
        return list(jax.tree.leaves(given)) if same else None

    return arrays


def check_allowed(problem: Problem, episode: Episode, acted: Bool[np.ndarray, "rounds agents"]) -> None:
    """Refuse actions that the action mask of an agent excluded, up to the first round in which nobody knows its action.

    What it may do in later rounds may depend on that action.
    """
    rounds = len(acted)
    if not problem.has_action_mask or rounds == 0:
        return
    actions = np.asarray(episode.actions)
    allowed = np.asarray(_were_allowed(problem, jnp.asarray(actions, jnp.int32), episode.observations))[:rounds]
    odd = ~allowed & np.logical_and.accumulate(acted, axis=0)
    if odd.any():
        number, agent = (int(index[0]) for index in np.nonzero(odd))
        refuse_masked(int(actions[number, agent]), f"agent {agent} in round {number}")


@eqx.filter_jit
def _were_allowed(
    problem: Problem, actions: Integer[Array, "rounds agents"], observations: PyTree
) -> Bool[Array, "rounds-1 agents"]:
    """Whether each action was allowed, given observations that begin with that before round 0."""
    agents = jnp.arange(problem.agents)

    def advance(memories: PyTree, taken: tuple) -> tuple[PyTree, Bool[Array, "agents"]]:
        action, seen = taken
        allowed = jax.vmap(problem.action_mask)(memories)[agents, action]
        return jax.vmap(problem.update_memory)(memories, agents, action, seen), allowed

    memories = jax.vmap(problem.init_memory)(agents, jax.tree.map(lambda x: x[0], observations))
    later = jax.tree.map(lambda x: x[1:], observations)
    return jax.lax.scan(advance, memories, (actions[: len(actions) - 1], later))[1]
