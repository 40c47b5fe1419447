"""A problem as a game with a shared reward, for learners that know nothing of hypotheses.

Every function is pure and written for one world. STOP is the action after the last one. A STOP that is heard ends the
episode for all agents, without a sample and with reward 0. The horizon truncates: after T-1 rounds of samples no choice
is left, as STOP is forced in round T-1. Either way an inference then answers from the data of all agents.

A round of samples pays the gain in the potential P(H*|D) minus a fixed price. An episode therefore pays its last
potential minus its first one minus price × rounds of samples.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from icmape.play.inference import TeamInference
from icmape.play.policy import Round
from icmape.play.rollout import RELAY, executed
from icmape.problem import Features, Problem


class GameState(NamedTuple):
    """One world in the middle of an episode."""

    world: Any
    state: PyTree  # the problem's own
    memories: PyTree  # leading agent axis
    knowledge: PyTree  # the inference's
    scores: Float[Array, "..."]  # of the inference, over the hypotheses
    number: Int[Array, ""]  # of the round to be played


class Turn(NamedTuple):
    """What came of a joint action."""

    state: GameState
    reward: Float[Array, ""]  # everyone's
    stopped: Bool[Array, ""]
    truncated: Bool[Array, ""]


class Answer(NamedTuple):
    """What the inference says now, and whether it is right."""

    answer: Int[Array, "..."]
    truth: Array
    correct: Bool[Array, ""]
    confidence: Float[Array, ""]


class Game(eqx.Module):
    """The rules. `inference` gives the potential and the answer: the exact posterior, or a network."""

    problem: Problem
    inference: TeamInference
    price: float = eqx.field(static=True)  # of a round (ζ)

    def reset(self, key: Key[Array, ""]) -> GameState:
        """A fresh world before round 0: the world that an episode with this key has in `play.rollout`."""
        for_world, for_start, _ = jax.random.split(key, 3)
        world = self.problem.sample(key=for_world)
        state, first = self.problem.start(world, key=for_start)
        memories = jax.vmap(self.problem.init_memory)(jnp.arange(self.problem.agents), first)
        seen = self._round(jnp.int32(0), memories, jnp.full(self.problem.agents, -1), first)
        knowledge, scores = self.inference.step(self.problem, self.inference.start(self.problem), seen)
        return GameState(world, state, memories, knowledge, scores, jnp.int32(0))

    def step(self, key: Key[Array, ""], before: GameState, actions: Int[Array, "agents"]) -> Turn:
        """Execute a joint action. An action that the problem does not allow is executed as the first that it does."""
        chosen = jnp.where(self._possible(before, actions), actions, self._first_allowed(before))
        state, chosen, stopped = self.problem.relay(before.state, chosen, key=jax.random.fold_in(key, RELAY))
        acted = executed(self.problem, chosen)
        state, observation = self.problem.step(before.world, state, acted, key=key)
        agents = jnp.arange(self.problem.agents)
        memories = jax.vmap(self.problem.update_memory)(before.memories, agents, acted, observation)
        seen = self._round(before.number + 1, memories, acted, observation)
        knowledge, scores = self.inference.step(self.problem, before.knowledge, seen)
        after = GameState(before.world, state, memories, knowledge, scores, seen.number)
        reward = jnp.where(stopped, 0.0, self.potential(after) - self.potential(before) - self.price)
        kept = jax.tree.map(lambda old, new: jnp.where(stopped, old, new), before, after)
        return Turn(kept, reward, stopped, ~stopped & (seen.number >= self.problem.horizon - 1))

    def potential(self, state: GameState) -> Float[Array, ""]:
        """P(H*|D)."""
        return jnp.exp(self.problem.hypotheses.log_truth(state.scores, state.world.hypothesis))

    def answer(self, state: GameState) -> Answer:
        """The most probable answer now."""
        space, truth = self.problem.hypotheses, state.world.hypothesis
        answer = space.decide(state.scores)
        return Answer(answer, truth, space.correct(answer, truth), space.confidence(state.scores))

    def observations(self, state: GameState) -> Float[Array, "agents features"]:
        """What each agent observes: its own features, who it is, and the share of the horizon that has passed."""
        return observations(self.problem, jax.vmap(self.problem.features)(state.memories), state.number)

    def team_state(self, state: GameState) -> Float[Array, "features"]:
        """What a centralized value may read: the team's features, and the share of the horizon that has passed."""
        passed = (state.number / self.problem.horizon)[None]
        return jnp.concatenate([_flat(self.problem.team_features(state.memories)), passed])

    def mask(self, state: GameState) -> Bool[Array, "agents choices"]:
        """The actions that are offered to the learner for each agent, and STOP where it would be heard."""
        offered = jax.vmap(self.problem.learner_action_mask)(state.memories)
        return jnp.concatenate([offered, self._heard(state)[:, None]], axis=1)

    def _heard(self, state: GameState) -> Bool[Array, "agents"]:
        return jax.vmap(self.problem.stop_mask)(state.memories)

    def _possible(self, state: GameState, actions: Int[Array, "agents"]) -> Bool[Array, "agents"]:
        allowed = jax.vmap(self.problem.action_mask)(state.memories)
        choices = jnp.concatenate([allowed, self._heard(state)[:, None]], axis=1)
        return jnp.take_along_axis(choices, actions[:, None], axis=1)[:, 0]

    def _first_allowed(self, state: GameState) -> Int[Array, "agents"]:
        return jnp.argmax(jax.vmap(self.problem.action_mask)(state.memories), axis=1).astype(jnp.int32)

    def _round(self, number: Array, memories: PyTree, actions: Array, observation: PyTree) -> Round:
        return Round(number, jax.vmap(self.problem.features)(memories), actions, observation, memories)


def observations(problem: Problem, views: Features, number: Int[Array, ""]) -> Float[Array, "agents features"]:
    """Every agent's features (token, then the grid row by row, if any), its identity, and t/T."""
    passed = jnp.full((problem.agents, 1), number / problem.horizon)
    return jnp.concatenate([jax.vmap(_flat)(views), jnp.eye(problem.agents), passed], axis=1)


def _flat(view: Features) -> Float[Array, "features"]:
    parts = [view.token] if view.grid is None else [view.token, view.grid.reshape(-1)]
    return jnp.concatenate([part.astype(jnp.float32) for part in parts])
