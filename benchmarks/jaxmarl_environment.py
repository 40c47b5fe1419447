"""A problem of ours as a game with a shared reward, for learners that know nothing of hypotheses.

Every function is pure and written for one world. Nothing here needs JaxMARL; `jaxmarl_worker` makes an environment of
it.

A round pays the gain in the potential P(H*|D) minus a fixed price. An episode therefore pays its last potential minus
its first one minus price × rounds. STOP is the action after the last one. Any agent's STOP ends the episode, without
a sample and with reward 0. The horizon forces STOP.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from icmape.play.inference import TeamInference
from icmape.play.policy import Round
from icmape.problem import Features, Problem


class GameState(NamedTuple):
    """One world in the middle of an episode."""

    world: Any
    state: PyTree  # the problem's own
    memories: PyTree  # leading agent axis
    knowledge: PyTree  # the inference's
    number: Int[Array, ""]  # of the round to be played
    potential: Float[Array, ""]


class Game(eqx.Module):
    """The rules. `inference` gives the potential: the exact posterior, or a trained network."""

    problem: Problem
    inference: TeamInference
    price: float = eqx.field(static=True)  # of a round (ζ)

    def reset(self, key: Key[Array, ""]) -> GameState:
        """A fresh world before round 0."""
        for_world, for_start = jax.random.split(key)
        world = self.problem.sample(key=for_world)
        state, first = self.problem.start(world, key=for_start)
        memories = jax.vmap(self.problem.init_memory)(jnp.arange(self.problem.agents), first)
        seen = self._round(jnp.int32(0), memories, jnp.full(self.problem.agents, -1), first)
        knowledge, potential = self._judge(world, self.inference.start(self.problem), seen)
        return GameState(world, state, memories, knowledge, jnp.int32(0), potential)

    def step(
        self, key: Key[Array, ""], before: GameState, actions: Int[Array, "agents"]
    ) -> tuple[GameState, Float[Array, ""], Bool[Array, ""]]:
        """The state after a joint action, everyone's reward, and whether the episode has ended."""
        stop = jnp.any(actions == self.problem.actions) | (before.number == self.problem.horizon - 1)
        acted = jnp.minimum(actions, self.problem.actions - 1)  # stands in for STOP: nothing is kept of that sample
        state, observation = self.problem.step(before.world, before.state, acted, key=key)
        agents = jnp.arange(self.problem.agents)
        memories = jax.vmap(self.problem.update_memory)(before.memories, agents, acted, observation)
        seen = self._round(before.number + 1, memories, acted, observation)
        knowledge, potential = self._judge(before.world, before.knowledge, seen)
        after = GameState(before.world, state, memories, knowledge, seen.number, potential)
        reward = jnp.where(stop, 0.0, potential - before.potential - self.price)
        return jax.tree.map(lambda old, new: jnp.where(stop, old, new), before, after), reward, stop

    def observations(self, state: GameState) -> Float[Array, "agents features"]:
        """What each agent's network reads: its own view, who it is, and the share of the horizon that has passed."""
        return observations(self.problem, jax.vmap(self.problem.features)(state.memories), state.number)

    def world_state(self, state: GameState) -> Float[Array, "features"]:
        """What the centralized value reads."""
        return jnp.append(self.problem.team_features(state.memories).token, state.number / self.problem.horizon)

    def available(self, state: GameState) -> Bool[Array, "agents choices"]:
        """The actions offered to each agent, and STOP; in the last round STOP alone."""
        offered = jax.vmap(self.problem.learner_action_mask)(state.memories) & (state.number < self.problem.horizon - 1)
        return jnp.concatenate([offered, jnp.ones((self.problem.agents, 1), bool)], axis=1)

    def _round(self, number: Array, memories: PyTree, actions: Array, observation: PyTree) -> Round:
        return Round(number, jax.vmap(self.problem.features)(memories), actions, observation, memories)

    def _judge(self, world: Any, knowledge: PyTree, seen: Round) -> tuple[PyTree, Float[Array, ""]]:
        knowledge, scores = self.inference.step(self.problem, knowledge, seen)
        return knowledge, jnp.exp(self.problem.hypotheses.log_likelihood(scores, world.hypothesis))


def observations(problem: Problem, views: Features, number: Int[Array, ""]) -> Float[Array, "agents features"]:
    """Every agent's view token, its identity, and t/T."""
    passed = jnp.full((problem.agents, 1), number / problem.horizon)
    return jnp.concatenate([views.token, jnp.eye(problem.agents), passed], axis=1)
