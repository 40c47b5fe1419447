"""Policies that look at nothing: a fixed schedule, turns, and chance."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, Key

from icmape.play.policy import LocalPolicy
from icmape.problem import Features, Problem


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
        self,
        state: tuple,
        agent: Integer[Array, ""],
        view: Features,
        number: Integer[Array, ""],
        *,
        key: Key[Array, ""],
    ) -> tuple[tuple, Float[Array, "choices"]]:
        """The scheduled action; never STOP."""
        return state, jax.nn.one_hot(self.table[number % self.table.shape[0], agent], self.choices)


class Turns(LocalPolicy):
    """Round robin: agent i begins with action i · offset and takes the next one in every round.

    Where that is not open to it, it takes the first one after it that is.
    """

    problem: Problem
    kind: Literal["turns"] = eqx.field(static=True, default="turns")

    @property
    def agents(self) -> int:
        """As many as the problem has."""
        return self.problem.agents

    def start_agent(self) -> tuple:
        """Nothing to remember."""
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
        """The next action; never STOP."""
        return state, jnp.append(turn(self.problem, agent, number), -jnp.inf)


def turn(problem: Problem, agent: Integer[Array, ""], number: Integer[Array, ""]) -> Float[Array, "actions"]:
    """Scores of actions: 0 for the one whose turn it is, -1 for the next, and so on. Agents begin far apart."""
    behind = (jnp.arange(problem.actions) - (number + agent * offset(problem))) % problem.actions
    return -behind.astype(jnp.float32)


def offset(problem: Problem) -> int:
    """Actions between one agent's turn and the next agent's."""
    return max(1, problem.actions // problem.agents)


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
        self,
        state: tuple,
        agent: Integer[Array, ""],
        view: Features,
        number: Integer[Array, ""],
        *,
        key: Key[Array, ""],
    ) -> tuple[tuple, Float[Array, "choices"]]:
        """Random scores; never STOP."""
        return state, jax.random.uniform(key, (self.choices,)).at[-1].set(-jnp.inf)


class FixedLogits(Chance):
    """Every agent draws an action with these probabilities in every round."""

    logits: Float[Array, "actions"]
    kind: str = eqx.field(static=True)

    def decide_agent(
        self,
        state: tuple,
        agent: Integer[Array, ""],
        view: Features,
        number: Integer[Array, ""],
        *,
        key: Key[Array, ""],
    ) -> tuple[tuple, Float[Array, "choices"]]:
        """Its draw scores highest; never STOP."""
        return state, jnp.append(self.logits + jax.random.gumbel(key, self.logits.shape), -jnp.inf)


def schedule_from_loads(loads: list[tuple[int, ...]]) -> Int[Array, "rounds agents"]:
    """A table that puts loads[t][k] agents on action k in round t, lower-numbered agents first."""
    rows = [[action for action, count in enumerate(row) for _ in range(count)] for row in loads]
    return jnp.asarray(rows, jnp.int32)
