"""Policies in which each agent reads its own actions and observations."""

from abc import abstractmethod
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Key, PyTree

from icmape.errors import UserError
from icmape.play.policy import LocalPolicy, Round
from icmape.problem import Features


class OwnReadings(LocalPolicy):
    """A policy in which an agent reads its own actions and observations, not only its features."""

    takes_missed: ClassVar[bool] = False

    @abstractmethod
    def decide_own(
        self, state: PyTree, agent: Integer[Array, ""], seen: Round, *, key: Key[Array, ""]
    ) -> tuple[PyTree, Float[Array, "choices"]]:
        """One agent's scores from its own row of a round."""

    def decide_agent(
        self,
        state: PyTree,
        agent: Integer[Array, ""],
        view: Features,
        number: Integer[Array, ""],
        *,
        key: Key[Array, ""],
    ) -> tuple[PyTree, Float[Array, "choices"]]:
        """Not supported: features alone are not enough."""
        raise UserError(f"{type(self).__name__} reads what an agent did and saw, not its view: call decide_own")

    def decide(
        self, state: PyTree, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[PyTree, Float[Array, "agents choices"]]:
        """Scores of all agents, each from its own row."""

        def decide_row(state: PyTree, agent: Array, key: Key[Array, ""], *row: PyTree) -> tuple[PyTree, Array]:
            return self.decide_own(state, agent, Round(seen.number, *row), key=key)

        keys, agents = jax.random.split(key, self.agents), jnp.arange(self.agents)
        return jax.vmap(decide_row)(state, agents, keys, seen.views, seen.actions, seen.observation, seen.memories)
