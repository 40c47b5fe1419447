"""A problem as a JaxMARL MultiAgentEnv. Needs the extra `jaxmarl`."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxmarl.environments.multi_agent_env import MultiAgentEnv
from jaxmarl.environments.spaces import Box, Discrete
from jaxtyping import Array

from icmape.ecosystem.game import Game, GameState
from icmape.ecosystem.sizes import GameSizes, game_sizes


class Environment(MultiAgentEnv):
    """A MultiAgentEnv: actions 0..A-1, then STOP. JaxMARL's own `step` begins a new episode where one ends.

    Observations have a `world_state` beside the agents' rows. Every info has one number per agent, which JaxMARL's
    scripts expect: `correct` and `confidence` of the answer now, which is the final one where `done["__all__"]`, and
    `truncated`. Keys may be raw (`jax.random.PRNGKey`) or typed.
    """

    def __init__(self, game: Game):
        super().__init__(game.problem.agents)
        self.game = game
        self.sizes: GameSizes = game_sizes(game)
        self.max_steps = game.problem.horizon - 1
        self.num_allies, self.state_size = self.num_agents, self.sizes.team_state  # as SMAX names them
        self.observation_spaces = {agent: Box(-jnp.inf, jnp.inf, (self.sizes.observation,)) for agent in self.agents}
        self.action_spaces = {agent: Discrete(game.problem.actions + 1) for agent in self.agents}

    @property
    def name(self) -> str:
        """The problem's name."""
        return f"icmape_{type(self.game.problem.unwrapped).__name__.lower()}"

    @property
    def agent_classes(self) -> dict[str, list[str]]:
        """All agents are of one class."""
        return {"agents": self.agents}

    @partial(jax.jit, static_argnums=0)
    def reset(self, key: Any) -> tuple[dict[str, Array], GameState]:
        """A fresh world before round 0."""
        state = self.game.reset(_typed(key))
        return self.get_obs(state), state

    def step_env(
        self, key: Any, state: Any, actions: dict[str, Array]
    ) -> tuple[dict[str, Array], Any, dict[str, Array], dict[str, Array], dict[str, Array]]:
        """A joint action, without a new episode at the end."""
        joint = jnp.stack([jnp.asarray(actions[agent], jnp.int32).reshape(()) for agent in self.agents])
        turn = self.game.step(_typed(key), state, joint)
        answer = self.game.answer(turn.state)
        done = turn.stopped | turn.truncated
        dones = {**self._shared(done), "__all__": done}
        numbers = {"correct": answer.correct, "confidence": answer.confidence, "truncated": turn.truncated}
        infos = {name: jnp.full(self.num_agents, jnp.asarray(value, jnp.float32)) for name, value in numbers.items()}
        return self.get_obs(turn.state), turn.state, self._shared(turn.reward), dones, infos

    def get_obs(self, state: Any) -> dict[str, Array]:
        """What each agent observes, and what a centralized value may read."""
        rows = self.game.observations(state)
        return {**dict(zip(self.agents, rows, strict=True)), "world_state": self.game.team_state(state)}

    @partial(jax.jit, static_argnums=0)
    def get_avail_actions(self, state: Any) -> dict[str, Array]:
        """The action masks; STOP is the last action."""
        return dict(zip(self.agents, self.game.mask(state), strict=True))

    def _shared(self, value: Array) -> dict[str, Array]:
        return dict.fromkeys(self.agents, value)


def _typed(key: Any) -> Any:
    """A typed key of a raw one."""
    return key if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(key)
