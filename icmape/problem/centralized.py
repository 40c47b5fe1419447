"""Centralized problems: one agent that observes and controls all agents."""

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
from icmape_agent.display import Display

LIMIT = 4096
"""Default limit of joint actions.

A network scores each joint action at each round. At 4,096 joint actions, an array over 128 episodes of 50 rounds takes
105 MB, and a training step holds several (the paper's A3P5 has 243 joint actions: 6 MB).
"""
MOST = 2**15 - 1  # STOP, the number after the last action, must fit the 16 bits in which episodes are stored


class Centralized(Adapter):
    """One agent that observes and controls all agents of a problem.

    Its actions are the joint actions, numbered in base `problem.actions` with agent 0 as the most significant digit.
    Its memory is the memories of all agents, and its features are those of the team. Worlds, observations and the exact
    posterior are those of the inner problem.

    Args:
        problem: the problem of several agents.
        limit: the largest number of joint actions that is accepted.
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
        """The smallest limit that accepts this problem. It is checked at construction only."""
        return max(LIMIT, self.actions)

    def split(self, action: Integer[Array | np.ndarray, "*batch"] | int) -> Int[Array, "*batch agents"]:
        """The action of each agent in a joint action; not defined for STOP."""
        if isinstance(action, int) and not 0 <= action < self.actions:
            raise UserError(f"joint actions are numbered 0..{self.actions - 1}; given {action} (is it STOP?)")
        joint = jnp.asarray(action).astype(jnp.int32)
        return jnp.stack([joint // place % self.problem.actions for place in self._places()], axis=-1)

    def join(self, actions: Integer[Array | np.ndarray, "*batch agents"] | list[int]) -> Int[Array, "*batch"]:
        """The joint action of the actions of all agents."""
        digits = jnp.unstack(jnp.asarray(actions).astype(jnp.int32), axis=-1)
        return sum((d * place for d, place in zip(digits, self._places(), strict=True)), start=jnp.int32(0))

    def _places(self) -> list[int]:
        return [self.problem.actions**i for i in reversed(range(self.problem.agents))]

    # -- the world

    def start(self, world: Any, *, key: Key[Array, ""]) -> tuple[PyTree, PyTree]:
        """The first observations of all agents, as one observation."""
        state, first = self.problem.start(world, key=key)
        return state, _only(first)

    def step(
        self, world: Any, state: PyTree, actions: Integer[Array, "1"], *, key: Key[Array, ""]
    ) -> tuple[PyTree, PyTree]:
        """Execute the joint action."""
        state, observation = self.problem.step(world, state, self.split(actions[0]), key=key)
        return state, _only(observation)

    # -- memory

    def init_memory(self, agent: Integer[Array, ""], observation: PyTree) -> PyTree:
        """The memories of all agents."""
        return jax.vmap(self.problem.init_memory)(self._everyone(), observation)

    def update_memory(
        self, memory: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""], observation: PyTree
    ) -> PyTree:
        """The memories of all agents after one more round."""
        return jax.vmap(self.problem.update_memory)(memory, self._everyone(), self.split(action), observation)

    def features(self, memory: PyTree) -> Features:
        """The team features of the inner problem."""
        return self.problem.team_features(memory)

    def team_features(self, memories: PyTree) -> Features:
        """The features of the only agent."""
        return self.features(_of_only(memories))

    def action_mask(self, memory: PyTree) -> Bool[Array, "actions"]:
        """The joint actions in which the action of every agent is allowed."""
        return _joint(jax.vmap(self.problem.action_mask)(memory))

    def learner_action_mask(self, memory: PyTree) -> Bool[Array, "actions"]:
        """The joint actions in which the action of every agent is in its learner action mask."""
        return _joint(jax.vmap(self.problem.learner_action_mask)(memory))

    def miss_memory(self, memory: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""]) -> PyTree:
        """The memories of all agents, of which none has a reading."""
        each = jnp.where(action < 0, action, self.split(action))
        return jax.vmap(self.problem.miss_memory)(memory, self._everyone(), each)

    def _everyone(self) -> Int[Array, "agents"]:
        return jnp.arange(self.problem.agents)

    # -- optional

    step_some = Problem.step_some  # the controller never fails; its agents do (`Centralized(Unreliable(problem))`)
    agents_interact = Problem.agents_interact
    stop_mask = Problem.stop_mask
    relay = Problem.relay  # an agent that is not told what to do does nothing
    stops_at_once = Problem.stops_at_once
    has_partial_beliefs = Problem.has_partial_beliefs
    update_partial_belief = Problem.update_partial_belief
    has_own_beliefs = Problem.has_own_beliefs  # the only agent's data are everyone's
    own_belief = Problem.own_belief
    update_own_belief = Problem.update_own_belief

    @property
    def readings(self) -> int:
        """Readings of all agents together."""
        return self.problem.agents * self.problem.readings

    @property
    def first_readings(self) -> int:
        """Readings of all agents together."""
        return self.problem.agents * self.problem.first_readings

    def action_name(self, action: int) -> str:
        """The names of the actions of all agents."""
        return ", ".join(self.problem.action_name(int(part)) for part in self.split(action))

    @property
    def display(self) -> Display:
        """Joint actions are plain choices."""
        return Display()

    def agent_actions(self, actions: Integer[Array | np.ndarray, "*batch 1"]) -> Int[np.ndarray, "*batch inner_agents"]:
        """The action of each inner agent in joint actions; STOP is STOP for every agent."""
        joint = np.asarray(actions)[..., 0].astype(np.int32)
        apart = np.asarray(self.split(np.minimum(joint, self.actions - 1)))
        return np.where((joint == self.actions)[..., None], self.problem.actions, apart)

    def agent_observations(self, observations: PyTree) -> PyTree:
        """The observations of the inner agents (leading axes: rounds, the only agent)."""
        return jax.tree.map(lambda seen: seen[:, 0], observations)

    def belief(self, first: PyTree | None = None) -> PyTree:
        """The belief of the inner problem."""
        return self.problem.belief(None if first is None else _of_only(first))

    def update_belief(self, belief: PyTree, actions: Integer[Array, "1"], observation: PyTree) -> PyTree:
        """The belief of the inner problem after a joint action."""
        return self.problem.update_belief(belief, self.split(actions[0]), _of_only(observation))

    def payoff(self, world: Any, observation: PyTree) -> Float[Array, ""]:
        """The payoff of the inner problem."""
        return self.problem.payoff(world, _of_only(observation))


def _joint(masks: Bool[Array, "agents actions"]) -> Bool[Array, "joint"]:
    joint, *others = jnp.unstack(masks)
    for mask in others:
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
