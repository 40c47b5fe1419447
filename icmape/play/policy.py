"""Policies: scores over every agent's actions and STOP, round by round."""

from abc import abstractmethod
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.networks import Actors
from icmape.problem import Features, Problem


class Round(NamedTuple):
    """What there is to be read in a round. A policy of local scope is handed its own agent's row only."""

    number: Int[Array, ""]
    views: Features  # leading agent axis
    actions: Int[Array, "agents"]  # of the round before; -1 at the start
    observation: PyTree
    memories: PyTree


@runtime_checkable
class Policy(Protocol):
    """What a rollout asks of a team. The greedy team takes the largest score; STOP is the last one."""

    def start(self) -> PyTree:
        """State before round 0."""

    def decide(
        self, state: PyTree, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[PyTree, Float[Array, "agents choices"]]:
        """Scores of every agent in this round."""


def takes(policy: Any) -> str:
    """Which mask a policy chooses under: "learner" unless it says "all", every action that is possible."""
    return str(getattr(policy, "takes", "learner"))


def actions_for(problem: Problem, policy: Any, memory: PyTree) -> Bool[Array, "actions"]:
    """What an agent with this memory may choose, by this policy."""
    return problem.action_mask(memory) if takes(policy) == "all" else problem.learner_action_mask(memory)


class LocalPolicy(eqx.Module):
    """A policy in which each agent decides from its own history."""

    @property
    @abstractmethod
    def agents(self) -> int:
        """How many agents there are."""

    @abstractmethod
    def start_agent(self) -> PyTree:
        """One agent's state before round 0."""

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
        """One agent's scores from its own view."""

    def start(self) -> PyTree:
        """Every agent's state."""
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (self.agents, *jnp.shape(x))), self.start_agent())

    def decide(
        self, state: PyTree, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[PyTree, Float[Array, "agents choices"]]:
        """Each agent by itself."""
        return jax.vmap(lambda s, i, view, k: self.decide_agent(s, i, view, seen.number, key=k))(
            state, jnp.arange(self.agents), seen.views, jax.random.split(key, self.agents)
        )


def as_policy(actors: Any) -> Policy:
    """What plays: learned actors as a policy, and a policy as it is."""
    return LearnedPolicy(actors) if isinstance(actors, Actors) else actors


class LearnedPolicy(LocalPolicy):
    """Trained actors."""

    actors: Actors

    @property
    def agents(self) -> int:
        """How many there are."""
        return self.actors.agents

    def start_agent(self) -> PyTree:
        """No history."""
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
        """The actor's scores."""
        return self.actors.pick(agent).step(state, view, agent, number)

    def decide(
        self, state: PyTree, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[PyTree, Float[Array, "agents choices"]]:
        """The same for all agents, with their weights side by side."""
        return self.actors.step(state, seen.views, seen.number)
