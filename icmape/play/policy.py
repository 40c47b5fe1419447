"""Policies: scores over the actions and STOP of every agent, round by round."""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.networks import Actors
from icmape.problem import Features, Problem


class Round(NamedTuple):
    """The inputs of a policy in a round. Local policies read only the row of their own agent."""

    number: Int[Array, ""]
    views: Features  # leading agent axis
    actions: Int[Array, "agents"]  # of the previous round; -1 at the start
    observation: PyTree
    memories: PyTree


@runtime_checkable
class Policy(Protocol):
    """Interface of policies in rollouts. A greedy team takes the action with the largest score; STOP is the last."""

    def start(self) -> PyTree:
        """State before round 0."""

    def decide(
        self, state: PyTree, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[PyTree, Float[Array, "agents choices"]]:
        """Scores of every agent in this round."""


def takes(policy: Any) -> str:
    """The action mask of a policy: "learner" (default) or "all" allowed actions."""
    return str(getattr(policy, "takes", "learner"))


def actions_for(problem: Problem, policy: Any, memory: PyTree) -> Bool[Array, "actions"]:
    """The action mask of this policy for an agent with this memory."""
    return problem.action_mask(memory) if takes(policy) == "all" else problem.learner_action_mask(memory)


class LocalPolicy(eqx.Module):
    """A policy in which each agent decides from its own history."""

    takes_missed: ClassVar[bool] = True
    """Whether an agent decides by its features alone, so that readings may be missing."""

    @property
    @abstractmethod
    def agents(self) -> int:
        """Number of agents."""

    @abstractmethod
    def start_agent(self) -> PyTree:
        """State of one agent before round 0."""

    @abstractmethod
    def decide_agent(
        self,
        state: PyTree,
        agent: Integer[Array, ""],
        view: Features,
        number: Integer[Array, ""],
        *,
        key: Key[Array, ""],
    ) -> tuple[PyTree, Float[Array, "choices"]]:
        """Scores of one agent, from its own features."""

    def start(self) -> PyTree:
        """States of all agents before round 0."""
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (self.agents, *jnp.shape(x))), self.start_agent())

    def decide(
        self, state: PyTree, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[PyTree, Float[Array, "agents choices"]]:
        """Scores of all agents, each from its own features."""
        return jax.vmap(lambda s, i, view, k: self.decide_agent(s, i, view, seen.number, key=k))(
            state, jnp.arange(self.agents), seen.views, jax.random.split(key, self.agents)
        )


class Stateless(LocalPolicy):
    """A policy whose agents keep no state: nothing but the round and the agent's features counts."""

    @abstractmethod
    def score(
        self, agent: Integer[Array, ""], view: Features, number: Integer[Array, ""], *, key: Key[Array, ""]
    ) -> Float[Array, "choices"]:
        """Scores of one agent in a round."""

    def start_agent(self) -> tuple:
        """No state."""
        return ()

    def decide_agent(
        self,
        state: tuple,
        agent: Integer[Array, ""],
        view: Features,
        number: Integer[Array, ""],
        *,
        key: Key[Array, ""],
    ) -> tuple[tuple, Float[Array, "choices"]]:
        """Scores of one agent."""
        return state, self.score(agent, view, number, key=key)


def as_policy(actors: Any) -> Policy:
    """A policy of actors; a policy is returned unchanged."""
    return LearnedPolicy(actors) if isinstance(actors, Actors) else actors


class LearnedPolicy(LocalPolicy):
    """Trained actors."""

    actors: Actors

    @property
    def agents(self) -> int:
        """Number of agents."""
        return self.actors.agents

    def start_agent(self) -> PyTree:
        """State of the encoder before round 0."""
        return self.actors.pick(jnp.int32(0)).start()

    def decide_agent(
        self,
        state: PyTree,
        agent: Integer[Array, ""],
        view: Features,
        number: Integer[Array, ""],
        *,
        key: Key[Array, ""],
    ) -> tuple[PyTree, Float[Array, "choices"]]:
        """Scores of the actor."""
        return self.actors.pick(agent).step(state, view, agent, number)

    def decide(
        self, state: PyTree, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[PyTree, Float[Array, "agents choices"]]:
        """Scores of all agents in one batch."""
        return self.actors.step(state, seen.views, seen.number)
