"""Rounds of pretrained teams, as their problems simulate them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from icmape.play.team import Team
from icmape.play.team_files import load

ROUNDS = 4
"""Another number than that of the agents."""


class Played(NamedTuple):
    """What a team did and saw: actions (rounds, agents), each part of the observations, and those before round 0."""

    team: Team
    actions: np.ndarray
    parts: tuple[np.ndarray, ...]
    first: tuple[np.ndarray, ...]
    rebuild: Callable[[Any], Any]
    """An observation of the problem's kind from its parts."""


def played(name: str) -> Played:
    """Some rounds of a pretrained team, as its problem simulates them."""
    team = load(name)
    problem = team.problem
    key = jax.random.key(3)
    world = problem.sample(key=key)
    state, first = problem.start(world, key=key)
    actions: list[np.ndarray] = []
    seen: list[Any] = []
    for number in range(ROUNDS):
        taken = (
            np.full(problem.agents, (0, 1)[number % 2])
            if name == "bandit-quick"
            else _allowed(problem, first, actions, seen)
        )
        state, observation = problem.step(
            world, state, jnp.asarray(taken, jnp.int32), key=jax.random.fold_in(key, number)
        )
        actions.append(taken)
        seen.append(observation)
    structure = jax.tree.structure(first)
    stacked = jax.tree.map(lambda *rows: np.stack([np.asarray(row) for row in rows]), *seen)
    return Played(
        team,
        np.stack(actions),
        tuple(jax.tree.leaves(stacked)),
        tuple(map(np.asarray, jax.tree.leaves(first))),
        lambda parts: jax.tree.unflatten(structure, list(parts)),
    )


def _allowed(problem: Any, first: Any, actions: list[np.ndarray], seen: list[Any]) -> np.ndarray:
    """The first allowed action of each agent."""
    taken = []
    for agent in range(problem.agents):
        index = jnp.int32(agent)
        memory = problem.init_memory(index, jax.tree.map(lambda x, agent=agent: x[agent], first))
        for row, observation in zip(actions, seen, strict=True):
            own = jax.tree.map(lambda x, agent=agent: x[agent], observation)
            memory = problem.update_memory(memory, index, jnp.int32(row[agent]), own)
        taken.append(int(np.argmax(np.asarray(problem.action_mask(memory)))))
    return np.array(taken)
