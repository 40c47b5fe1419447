"""Policies that read the most informative cells: by a fixed list, by each agent's own posterior, or centralized.

Scores are 0 for the chosen cell, -1 for the others, and positive for STOP when it is time to stop.
"""

from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, Key

from icmape.play.policy import LocalPolicy, Round
from icmape.problem import Features
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.hotspot.mixture import MixtureBelief, Outlook, YearMixture, query_means


@eqx.filter_jit
def reading_list(problem: Hotspot, model: YearMixture, rounds: int) -> Int[Array, "rounds agents"]:
    """Cells for every agent and round, chosen greedily in advance."""
    return best_cells(model.outlook(model.prior), rounds * problem.agents).reshape(rounds, problem.agents)


def best_cells(outlook: Outlook, count: int) -> Int[Array, "count"]:
    """The most informative cells, chosen greedily: each given those before it."""

    def add(outlook: Outlook, _: None) -> tuple[Outlook, Int[Array, ""]]:
        cell = outlook.best()
        return outlook.after(cell), cell

    return jax.lax.scan(add, outlook, None, length=count)[1]


class Monitors(LocalPolicy):
    """Each agent has a posterior of its own data, and stops when it reaches the level."""

    stops_by_confidence: ClassVar[bool] = False
    takes_missed: ClassVar[bool] = False
    problem: Hotspot
    model: YearMixture
    cells: Int[Array, "rounds agents"]
    level: Float[Array, ""]
    adapts: bool = eqx.field(static=True)
    kind: Literal["monitors"] = eqx.field(static=True, default="monitors")

    @property
    def agents(self) -> int:
        """As many as the problem has."""
        return self.problem.agents

    def start_agent(self) -> MixtureBelief:
        """The prior."""
        return self.model.prior

    def decide_agent(
        self,
        state: MixtureBelief,
        agent: Integer[Array, ""],
        view: Features,
        number: Integer[Array, ""],
        *,
        key: Key[Array, ""],
    ) -> tuple[MixtureBelief, Float[Array, "choices"]]:
        """The listed cell, or the most informative one given the agent's posterior and the others' listed cells."""
        cell_one_hot, reading = view.token[: self.problem.actions], view.token[self.problem.actions]
        value = reading * self.problem.spread + self.problem.centre
        belief = jax.lax.cond(
            number > 0, lambda: self.model.told(state, jnp.argmax(cell_one_hot)[None], value[None]), lambda: state
        )
        cell = self._own(belief, agent, number) if self.adapts else self._listed(number)[agent]
        return belief, scores(self.problem, cell, jnp.max(self.model.chances(belief)), self.level)

    def _listed(self, number: Integer[Array, ""]) -> Int[Array, "agents"]:
        return self.cells[jnp.minimum(number, self.cells.shape[0] - 1)]

    def _own(self, belief: MixtureBelief, agent: Integer[Array, ""], number: Integer[Array, ""]) -> Int[Array, ""]:
        def add_other(index: Int[Array, ""], outlook: Outlook) -> Outlook:
            past, offset = jnp.divmod(index, self.agents - 1)
            return outlook.after(self._listed(past)[(agent + 1 + offset) % self.agents])

        outlook = jax.lax.fori_loop(0, (number + 1) * (self.agents - 1), add_other, self.model.outlook(belief))
        return jnp.where(number == 0, self._listed(number)[agent], outlook.best())


class CentralMonitor(eqx.Module):
    """Team scope: centralized, uses all readings."""

    stops_by_confidence: ClassVar[bool] = True
    problem: Hotspot
    model: YearMixture
    level: Float[Array, ""]
    kind: Literal["central-adaptive"] = eqx.field(static=True, default="central-adaptive")

    def start(self) -> MixtureBelief:
        """The prior."""
        return self.model.prior

    def decide(
        self, state: MixtureBelief, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[MixtureBelief, Float[Array, "agents choices"]]:
        """The most informative cells; STOP when the posterior reaches the level."""
        belief = jax.lax.cond(
            seen.number > 0,
            lambda: self.model.told(state, jnp.maximum(seen.actions, 0), query_means(seen.observation)),
            lambda: state,
        )
        cells = best_cells(self.model.outlook(belief), self.problem.agents)
        sure = jnp.max(self.model.chances(belief))
        return belief, jax.vmap(lambda cell: scores(self.problem, cell, sure, self.level))(cells)


def scores(
    problem: Hotspot, cell: Integer[Array, ""], sure: Float[Array, ""], level: Float[Array, ""]
) -> Float[Array, "choices"]:
    """0 for the chosen cell, -1 for the others, and the excess of the confidence over the level for STOP."""
    return (jax.nn.one_hot(cell, problem.actions + 1) - 1).at[-1].set(sure - level)
