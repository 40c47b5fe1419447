"""Policies that ignore observations: fixed schedules, round robin, and random actions."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, Key

from icmape.play.policy import Stateless
from icmape.problem import Features, Problem


class Schedule(Stateless):
    """Each agent follows its column of a table, which repeats."""

    table: Int[Array, "rounds agents"]
    choices: int = eqx.field(static=True)
    kind: Literal["schedule"] = eqx.field(static=True, default="schedule")

    @property
    def agents(self) -> int:
        """Number of columns of the table."""
        return self.table.shape[1]

    def score(
        self, agent: Integer[Array, ""], view: Features, number: Integer[Array, ""], *, key: Key[Array, ""]
    ) -> Float[Array, "choices"]:
        """The scheduled action; never STOP."""
        return jax.nn.one_hot(self.table[number % self.table.shape[0], agent], self.choices)


class Turns(Stateless):
    """Round robin: agent i begins with action i · offset and takes the next action in every round.

    If the action mask excludes that action, it takes the first allowed one after it.
    """

    problem: Problem
    kind: Literal["turns"] = eqx.field(static=True, default="turns")

    @property
    def agents(self) -> int:
        """The agents of the problem."""
        return self.problem.agents

    def score(
        self, agent: Integer[Array, ""], view: Features, number: Integer[Array, ""], *, key: Key[Array, ""]
    ) -> Float[Array, "choices"]:
        """The next action; never STOP."""
        return jnp.append(turn(self.problem, agent, number), -jnp.inf)


def turn(problem: Problem, agent: Integer[Array, ""], number: Integer[Array, ""]) -> Float[Array, "actions"]:
    """Scores of actions: 0 for the one whose turn it is, -1 for the next, and so on. Agents begin at an offset."""
    behind = (jnp.arange(problem.actions) - (number + agent * offset(problem))) % problem.actions
    return -behind.astype(jnp.float32)


def offset(problem: Problem) -> int:
    """Offset between the actions of consecutive agents."""
    return max(1, problem.actions // problem.agents)


class Chance(Stateless):
    """Random actions, independent of observations."""

    team_size: int = eqx.field(static=True)

    @property
    def agents(self) -> int:
        """Number of agents."""
        return self.team_size


class Uniform(Chance):
    """Every agent takes a random action in every round."""

    choices: int = eqx.field(static=True)
    kind: Literal["uniform"] = eqx.field(static=True, default="uniform")

    def score(
        self, agent: Integer[Array, ""], view: Features, number: Integer[Array, ""], *, key: Key[Array, ""]
    ) -> Float[Array, "choices"]:
        """Random scores; never STOP."""
        return jax.random.uniform(key, (self.choices,)).at[-1].set(-jnp.inf)


class FixedLogits(Chance):
    """Every agent samples its actions from the softmax of fixed logits."""

    logits: Float[Array, "actions"]
    kind: str = eqx.field(static=True)

    def score(
        self, agent: Integer[Array, ""], view: Features, number: Integer[Array, ""], *, key: Key[Array, ""]
    ) -> Float[Array, "choices"]:
        """Gumbel noise on the logits; never STOP."""
        return jnp.append(self.logits + jax.random.gumbel(key, self.logits.shape), -jnp.inf)


def schedule_from_loads(loads: list[tuple[int, ...]]) -> Int[Array, "rounds agents"]:
    """A table that puts loads[t][k] agents on action k in round t, lower-numbered agents first."""
    rows = [[action for action, count in enumerate(row) for _ in range(count)] for row in loads]
    return jnp.asarray(rows, jnp.int32)
