"""Policies that look at nothing: a fixed schedule, and chance."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, Key

from icmape.learning.policy import LocalPolicy
from icmape.problems import View


class Schedule(LocalPolicy):
    """Each agent follows its column of a table, from the top again when it ends."""

    table: Int[Array, "rounds agents"]
    choices: int = eqx.field(static=True)
    kind: Literal["schedule"] = eqx.field(static=True, default="schedule")

    @property
    def agents(self) -> int:
        """Columns of the table."""
        return self.table.shape[1]

    def start_agent(self) -> tuple:
        """Nothing to remember."""
        return ()

    def decide_agent(
        self, state: tuple, agent: Integer[Array, ""], view: View, number: Integer[Array, ""], *, key: Key[Array, ""]
    ) -> tuple[tuple, Float[Array, "choices"]]:
        """The scheduled action; never STOP."""
        return state, jax.nn.one_hot(self.table[number % self.table.shape[0], agent], self.choices)


class Chance(LocalPolicy):
    """Agents that draw what they do, whatever they and the others have seen."""

    team_size: int = eqx.field(static=True)

    @property
    def agents(self) -> int:
        """How many of them."""
        return self.team_size

    def start_agent(self) -> tuple:
        """Nothing to remember."""
        return ()


class Uniform(Chance):
    """Every agent takes a random action in every round."""

    choices: int = eqx.field(static=True)
    kind: Literal["uniform"] = eqx.field(static=True, default="uniform")

    def decide_agent(
        self, state: tuple, agent: Integer[Array, ""], view: View, number: Integer[Array, ""], *, key: Key[Array, ""]
    ) -> tuple[tuple, Float[Array, "choices"]]:
        """Random scores; never STOP."""
        return state, jax.random.uniform(key, (self.choices,)).at[-1].set(-jnp.inf)


def schedule_from_loads(loads: list[tuple[int, ...]]) -> Int[Array, "rounds agents"]:
    """A table that puts loads[t][k] agents on action k in round t, lower-numbered agents first."""
    rows = [[action for action, count in enumerate(row) for _ in range(count)] for row in loads]
    return jnp.asarray(rows, jnp.int32)
