"""Crews that read where it tells most of which cells are highest: by one list for all, each by itself, or as one.

Scores are 0 for the cell to go to, -1 for the others, and for STOP what is above 0 when it is time.
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
    """Cells for every agent and round, each the best one given all before it: what is read changes nothing."""

    def add(outlook: Outlook, _: None) -> tuple[Outlook, Int[Array, ""]]:
        cell = outlook.best()
        return outlook.after(cell), cell

    cells = jax.lax.scan(add, model.outlook(model.prior), None, length=rounds * problem.agents)[1]
    return cells.reshape(rounds, problem.agents)


class Monitors(LocalPolicy):
    """Each agent has a posterior of its own data; it stops when that is sure enough."""

    stops_by_confidence: ClassVar[bool] = False
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
        """By the list, or where its own posterior says that it tells most beside what the others read by the list."""
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
    """Team scope: everyone's readings in one head."""

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
        """The cells that tell most together; STOP when the posterior is sure enough."""
        belief = jax.lax.cond(
            seen.number > 0,
            lambda: self.model.told(state, jnp.maximum(seen.actions, 0), query_means(seen.observation)),
            lambda: state,
        )

        def add(outlook: Outlook, _: None) -> tuple[Outlook, Int[Array, ""]]:
            cell = outlook.best()
            return outlook.after(cell), cell

        cells = jax.lax.scan(add, self.model.outlook(belief), None, length=self.problem.agents)[1]
        sure = jnp.max(self.model.chances(belief))
        return belief, jax.vmap(lambda cell: scores(self.problem, cell, sure, self.level))(cells)


def scores(
    problem: Hotspot, cell: Integer[Array, ""], sure: Float[Array, ""], level: Float[Array, ""]
) -> Float[Array, "choices"]:
    """0 for a cell, and above it for STOP when something is surer than the level."""
    return (jax.nn.one_hot(cell, problem.actions + 1) - 1).at[-1].set(sure - level)
