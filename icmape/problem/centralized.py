"""N agents seen as one: the decentralization removed."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.errors import UserError
from icmape.problem.adapter import Adapter
from icmape.problem.contract import Features, Problem
from icmape.problem.hypotheses import HypothesisSpace

LIMIT = 4096
"""Joint actions at most, unless the caller allows more.

A network gives every one of them a score at every round: over 128 episodes of 50 rounds that is 105 MB an array at
4,096, of which a training step holds several (the paper's A3P5 has 243: 6 MB).
"""
MOST = 2**15 - 1  # STOP, the number after the last action, must fit the 16 bits in which episodes are stored


class Centralized(Adapter):
    """One agent that sees what all agents of a problem see and moves all of them: the decentralization removed.

    Its actions are the joint actions, read as numbers in base `problem.actions` with agent 0 the most significant
    digit; its memory is all memories and its view the team's. Worlds, observations and exact posterior are those of the
    problem inside.

    Args:
        problem: the problem of several agents.
        limit: joint actions at most; more are refused.
    """

    problem: Problem
    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: HypothesisSpace

    def __init__(self, problem: Problem, limit: int = LIMIT):
        _check(problem, limit)
        self.problem = problem
        self.agents, self.actions, self.horizon = 1, problem.actions**problem.agents, problem.horizon
        self.hypotheses = problem.hypotheses

    @property
    def limit(self) -> int:
        """The least that admits this problem: it guards the construction only, and makes no other problem of it."""
        return max(LIMIT, self.actions)

    def split(self, action: Integer[Array | np.ndarray, "*batch"] | int) -> Int[Array, "*batch agents"]:
        """The action of each agent in a joint action; STOP has none."""
        if isinstance(action, int) and not 0 <= action < self.actions:
            raise UserError(f"joint actions are numbered 0..{self.actions - 1}; given {action} (is it STOP?)")
        joint = jnp.asarray(action).astype(jnp.int32)
        return jnp.stack([joint // place % self.problem.actions for place in self._places()], axis=-1)

    def join(self, actions: Integer[Array | np.ndarray, "*batch agents"] | list[int]) -> Int[Array, "*batch"]:
        """The joint action that is made of these actions."""
        digits = jnp.unstack(jnp.asarray(actions).astype(jnp.int32), axis=-1)
        return sum((d * place for d, place in zip(digits, self._places(), strict=True)), start=jnp.int32(0))

    def _places(self) -> list[int]:
        return [self.problem.actions**i for i in reversed(range(self.problem.agents))]

    # -- the world

    def start(self, world: Any, *, key: Key[Array, ""]) -> tuple[PyTree, PyTree]:
        """The only agent sees everyone's first observation."""
        state, first = self.problem.start(world, key=key)
        return state, _only(first)

    def step(
        self, world: Any, state: PyTree, actions: Integer[Array, "1"], *, key: Key[Array, ""]
    ) -> tuple[PyTree, PyTree]:
        """Everyone's part of the joint action, at once."""
        state, observation = self.problem.step(world, state, self.split(actions[0]), key=key)
        return state, _only(observation)

    # -- what is remembered

    def init_memory(self, agent: Integer[Array, ""], observation: PyTree) -> PyTree:
        """All memories."""
        return jax.vmap(self.problem.init_memory)(self._everyone(), observation)

    def update_memory(
        self, memory: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""], observation: PyTree
    ) -> PyTree:
        """All memories after one more round."""
        return jax.vmap(self.problem.update_memory)(memory, self._everyone(), self.split(action), observation)

    def features(self, memory: PyTree) -> Features:
        """What is read of all memories."""
        return self.problem.team_features(memory)

    def team_features(self, memories: PyTree) -> Features:
        """The view of the only agent."""
        return self.features(_of_only(memories))

    def action_mask(self, memory: PyTree) -> Bool[Array, "actions"]:
        """The joint actions that every agent may take its part in."""
        return _joint(jax.vmap(self.problem.action_mask)(memory))

    def learner_action_mask(self, memory: PyTree) -> Bool[Array, "actions"]:
        """The joint actions of which every part is offered."""
        return _joint(jax.vmap(self.problem.learner_action_mask)(memory))

    def _everyone(self) -> Int[Array, "agents"]:
        return jnp.arange(self.problem.agents)

    # -- optional

    @property
    def readings(self) -> int:
        """Those of all agents."""
        return self.problem.agents * self.problem.readings

    @property
    def first_readings(self) -> int:
        """Those of all agents."""
        return self.problem.agents * self.problem.first_readings

    def action_name(self, action: int) -> str:
        """Everyone's part."""
        return ", ".join(self.problem.action_name(int(part)) for part in self.split(action))

    def agent_actions(self, actions: Integer[Array | np.ndarray, "*batch 1"]) -> Int[np.ndarray, "*batch inner_agents"]:
        """Everyone's part of joint actions; STOP is everyone's."""
        joint = np.asarray(actions)[..., 0].astype(np.int32)
        apart = np.asarray(self.split(np.minimum(joint, self.actions - 1)))
        return np.where((joint == self.actions)[..., None], self.problem.actions, apart)

    def agent_observations(self, observations: PyTree) -> PyTree:
        """What everyone saw (leading axes of rounds and of the only agent)."""
        return jax.tree.map(lambda seen: seen[:, 0], observations)

    def belief(self, first: PyTree | None = None) -> PyTree:
        """That of the problem inside."""
        return self.problem.belief(None if first is None else _of_only(first))

    def update_belief(self, belief: PyTree, actions: Integer[Array, "1"], observation: PyTree) -> PyTree:
        """That of the problem inside, after everyone's part."""
        return self.problem.update_belief(belief, self.split(actions[0]), _of_only(observation))

    def payoff(self, world: Any, observation: PyTree) -> Float[Array, ""]:
        """That of the problem inside."""
        return self.problem.payoff(world, _of_only(observation))


def _joint(masks: Bool[Array, "agents actions"]) -> Bool[Array, "joint"]:
    joint, *rest = jnp.unstack(masks)
    for mask in rest:
        joint = (joint[:, None] & mask[None, :]).reshape(-1)
    return joint


def _only(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[None], tree)


def _of_only(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[0], tree)


def _check(problem: Problem, limit: int) -> None:
    if not isinstance(problem, Problem):
        raise UserError(f"Centralized takes an instance of a problem, as in Centralized(Bandit()); given {problem!r}")
    if isinstance(problem, Centralized):
        raise UserError("this problem is centralized already: it has one agent, which moves everyone")
    count = problem.actions**problem.agents
    if count <= min(limit, MOST):
        return
    name, limit = type(problem).__name__, min(limit, MOST)
    way_out = f", or allow it with Centralized(problem, limit={count})" if count <= MOST else ""
    raise UserError(
        f"Centralized({name}) would choose among {count:,} joint actions ({problem.actions} actions of each of "
        f"{problem.agents} agents), above the limit of {limit:,}: a network scores every one of them at every round. "
        f"Take fewer agents or actions, or leave the agents decentralized{way_out}"
    )
