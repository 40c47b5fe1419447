"""Base class of problems that wrap another problem."""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.problem.contract import Features, Problem
from icmape_agent.display import Display


class Adapter(Problem):
    """Delegates to `problem`. A subclass sets the four fields of a problem and overrides what differs."""

    problem: eqx.AbstractVar[Problem]

    @property
    def unwrapped(self) -> Problem:
        """The problem without any adapter."""
        return self.problem.unwrapped

    # -- the world

    def sample(self, *, key: Key[Array, ""]) -> Any:
        """Delegated."""
        return self.problem.sample(key=key)

    def start(self, world: Any, *, key: Key[Array, ""]) -> tuple[PyTree, PyTree]:
        """Delegated."""
        return self.problem.start(world, key=key)

    def step(
        self, world: Any, state: PyTree, actions: Integer[Array, "agents"], *, key: Key[Array, ""]
    ) -> tuple[PyTree, PyTree]:
        """Delegated."""
        return self.problem.step(world, state, actions, key=key)

    # -- memory

    def init_memory(self, agent: Integer[Array, ""], observation: PyTree) -> PyTree:
        """Delegated."""
        return self.problem.init_memory(agent, observation)

    def update_memory(
        self, memory: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""], observation: PyTree
    ) -> PyTree:
        """Delegated."""
        return self.problem.update_memory(memory, agent, action, observation)

    def features(self, memory: PyTree) -> Features:
        """Delegated."""
        return self.problem.features(memory)

    def team_features(self, memories: PyTree) -> Features:
        """Delegated."""
        return self.problem.team_features(memories)

    def action_mask(self, memory: PyTree) -> Bool[Array, "actions"]:
        """Delegated."""
        return self.problem.action_mask(memory)

    def learner_action_mask(self, memory: PyTree) -> Bool[Array, "actions"]:
        """Delegated."""
        return self.problem.learner_action_mask(memory)

    # -- what goes wrong

    def miss_memory(self, memory: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""]) -> PyTree:
        """Delegated."""
        return self.problem.miss_memory(memory, agent, action)

    @property
    def reads_missed(self) -> bool:
        """Delegated."""
        return self.problem.reads_missed

    def step_some(
        self,
        world: Any,
        state: PyTree,
        actions: Integer[Array, "agents"],
        acting: Bool[Array, "agents"],
        *,
        key: Key[Array, ""],
    ) -> tuple[PyTree, PyTree]:
        """Delegated."""
        return self.problem.step_some(world, state, actions, acting, key=key)

    @property
    def agents_interact(self) -> bool:
        """As inside."""
        return self.problem.agents_interact

    def stop_mask(self, memory: PyTree) -> Bool[Array, ""]:
        """Delegated."""
        return self.problem.stop_mask(memory)

    def relay(
        self, state: PyTree, chosen: Integer[Array, "agents"], *, key: Key[Array, ""]
    ) -> tuple[PyTree, Integer[Array, "agents"], Bool[Array, ""]]:
        """Delegated."""
        return self.problem.relay(state, chosen, key=key)

    @property
    def stops_at_once(self) -> bool:
        """Delegated."""
        return self.problem.stops_at_once

    @property
    def has_partial_beliefs(self) -> bool:
        """Delegated."""
        return self.problem.has_partial_beliefs

    def update_partial_belief(
        self,
        belief: PyTree,
        actions: Integer[Array, "agents"],
        observation: PyTree,
        acted: Bool[Array, "agents"],
        arrived: Bool[Array, "agents"],
    ) -> PyTree:
        """Delegated."""
        return self.problem.update_partial_belief(belief, actions, observation, acted, arrived)

    # -- exact Bayes and the environment's own reward

    @property
    def posterior(self) -> str:
        """Delegated."""
        return self.problem.posterior

    def belief(self, first: PyTree | None = None) -> PyTree:
        """Delegated."""
        return self.problem.belief(first)

    def update_belief(self, belief: PyTree, actions: Integer[Array, "agents"], observation: PyTree) -> PyTree:
        """Delegated."""
        return self.problem.update_belief(belief, actions, observation)

    def log_posterior(self, belief: PyTree) -> Float[Array, "..."]:
        """Delegated."""
        return self.problem.log_posterior(belief)

    @property
    def has_own_beliefs(self) -> bool:
        """As inside."""
        return self.problem.has_own_beliefs

    def own_belief(self, agent: Integer[Array, ""], first: PyTree) -> PyTree:
        """As inside."""
        return self.problem.own_belief(agent, first)

    def update_own_belief(
        self, belief: PyTree, agent: Integer[Array, ""], action: Integer[Array, ""], observation: PyTree
    ) -> PyTree:
        """As inside."""
        return self.problem.update_own_belief(belief, agent, action, observation)

    def payoff(self, world: Any, observation: PyTree) -> Float[Array, ""]:
        """Delegated."""
        return self.problem.payoff(world, observation)

    @property
    def has_payoff(self) -> bool:
        """Delegated."""
        return self.problem.has_payoff

    # -- names and properties

    @property
    def question(self) -> str:
        """Delegated."""
        return self.problem.question

    @property
    def explanation(self) -> str:
        """Delegated."""
        return self.problem.explanation

    def action_name(self, action: int) -> str:
        """Delegated."""
        return self.problem.action_name(action)

    def answer_name(self, answer: Any) -> str:
        """Delegated."""
        return self.problem.answer_name(answer)

    @property
    def display(self) -> Display:
        """Delegated."""
        return self.problem.display

    @property
    def observation_range(self) -> PyTree:
        """Delegated."""
        return self.problem.observation_range

    @property
    def has_action_mask(self) -> bool:
        """Delegated."""
        return self.problem.has_action_mask

    @property
    def readings(self) -> int:
        """Delegated."""
        return self.problem.readings

    @property
    def first_readings(self) -> int:
        """Delegated."""
        return self.problem.first_readings

    @property
    def shows_first(self) -> bool:
        """Delegated."""
        return self.problem.shows_first

    @property
    def cells(self) -> Int[np.ndarray, "hypotheses"] | None:
        """Delegated."""
        return self.problem.cells

    @property
    def remark(self) -> str:
        """Delegated."""
        return self.problem.remark

    @property
    def given(self) -> str:
        """Delegated."""
        return self.problem.given

    @property
    def has_worlds(self) -> bool:
        """Delegated."""
        return self.problem.has_worlds

    @property
    def fixed_ground(self) -> bool:
        """Delegated."""
        return self.problem.fixed_ground

    @property
    def paper_inference(self) -> str:
        """Delegated."""
        return self.problem.paper_inference

    @property
    def patch(self) -> int:
        """Delegated."""
        return self.problem.patch
