"""Schedules with early stopping: by the team, by a player on its own readings, or with adaptive arms as well.

All stop when the expected gain in accuracy per round is below 1 - level. The score of the chosen arm is 0; the score of
STOP is positive when it is time to stop.
"""

from abc import abstractmethod
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, Key

from icmape.play.inference import ExactInference
from icmape.play.policy import LocalPolicy, Round
from icmape.problem import Features
from icmape.zoo.bandit.bandit import Bandit, BanditBelief
from icmape.zoo.bandit.outlook import gain_per_round, own_readings, planned_readings


class TeamSchedule(eqx.Module):
    """Team scope: all players follow the table, and the stop uses all readings."""

    problem: Bandit
    table: Int[Array, "rounds players"]
    level: Float[Array, ""]
    kind: Literal["schedule-global-stop"] = eqx.field(static=True, default="schedule-global-stop")

    def start(self) -> BanditBelief:
        """The prior."""
        return self.problem.belief()

    def decide(
        self, state: BanditBelief, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[BanditBelief, Float[Array, "agents choices"]]:
        """The scheduled arms, and STOP for all players together."""
        belief, _ = ExactInference().step(self.problem, state, seen)
        planned = planned_readings(self.problem, self.table)
        gain = gain_per_round(self.problem, belief, planned - planned[seen.number][None], seen.number)
        row = self.table[jnp.minimum(seen.number, self.table.shape[0] - 1)]
        return belief, jax.vmap(lambda arm: _scores(self.problem, arm, gain, self.level))(row)


class PlayerState(NamedTuple):
    """Readings of one player, at the loads that it assumes."""

    seen: BanditBelief
    load: Int[Array, ""]  # of the last pull
    trusted: Bool[Array, ""]  # whether that load was planned, so that a failure is informative


class Pull(NamedTuple):
    """An arm, its least load, and whether exactly this load was planned."""

    arm: Int[Array, ""]
    load: Int[Array, ""]
    planned: Bool[Array, ""]


class PlayerSchedule(LocalPolicy):
    """Each player follows its column and stops on its own readings; the others' readings are integrated out."""

    takes_missed: ClassVar[bool] = False
    problem: Bandit
    table: Int[Array, "rounds players"]
    level: Float[Array, ""]

    @abstractmethod
    def pull(self, seen: BanditBelief, agent: Integer[Array, ""], index: Integer[Array, ""]) -> Pull:
        """The pull of one player in a row of the table."""

    @property
    def agents(self) -> int:
        """Columns of the table."""
        return self.table.shape[1]

    def start_agent(self) -> PlayerState:
        """Nothing seen."""
        return PlayerState(self.problem.belief(), jnp.int32(0), jnp.array(True))

    def decide_agent(
        self,
        state: PlayerState,
        agent: Integer[Array, ""],
        view: Features,
        number: Integer[Array, ""],
        *,
        key: Key[Array, ""],
    ) -> tuple[PlayerState, Float[Array, "choices"]]:
        """The arm to pull, and STOP when the player's own readings make the rest of the schedule unnecessary."""
        seen = self._take_in(state, view)
        planned = planned_readings(self.problem, self.table)
        own_planned = own_readings(self.problem, self.table, agent)[number]
        gain = gain_per_round(self.problem, seen, planned - own_planned[None], number)
        pull = self.pull(seen, agent, jnp.minimum(number, self.table.shape[0] - 1))
        return PlayerState(seen, pull.load, pull.planned), _scores(self.problem, pull.arm, gain, self.level)

    def _take_in(self, state: PlayerState, view: Features) -> BanditBelief:
        """Count the last reading; the view is zero before the first."""
        at_load = jax.nn.one_hot(state.load - 1, self.problem.players, dtype=jnp.int32)[None, :]
        paid, unpaid = jnp.split(view.token.astype(jnp.int32)[:, None], 2)
        return BanditBelief(
            state.seen.successes + paid * at_load, state.seen.failures + jnp.where(state.trusted, unpaid * at_load, 0)
        )


class FixedPulls(PlayerSchedule):
    """The fixed schedule."""

    kind: Literal["schedule-local-stop"] = eqx.field(static=True, default="schedule-local-stop")

    def pull(self, seen: BanditBelief, agent: Integer[Array, ""], index: Integer[Array, ""]) -> Pull:
        """The scheduled arm."""
        row = self.table[index]
        return Pull(row[agent], self.problem.loads(row)[row[agent]], jnp.array(True))


class AdaptivePulls(PlayerSchedule):
    """A player that was paid at the planned load leaves the arm for the next test that may be informative.

    It leaves only if it knows that the arm serves the planned load, so the conclusions of the players that stay are
    still correct. It joins only arms with at most one planned player, so no test is overloaded.
    """

    kind: Literal["local-adaptive"] = eqx.field(static=True, default="local-adaptive")

    def pull(self, seen: BanditBelief, agent: Integer[Array, ""], index: Integer[Array, ""]) -> Pull:
        """The scheduled arm, or another one if it is not informative."""
        all_loads = jax.vmap(self.problem.loads)(self.table)
        loads, arm = all_loads[index], self.table[index, agent]
        sizes = jnp.arange(1, self.problem.players + 1)[None, :]
        serves = jnp.max(jnp.where(seen.successes > 0, sizes, 0), axis=1)  # lower bounds from the player's own payoffs
        tested, with_load = jnp.argmax(all_loads, axis=1), jnp.max(all_loads, axis=1)
        useful = (serves[tested] < with_load) & (loads[tested] <= 1) & (tested != arm)
        useful = useful & (jnp.arange(self.table.shape[0]) > index)
        other = tested[jnp.argmax(useful)]
        goes = (serves[arm] >= loads[arm]) & jnp.any(useful)
        return Pull(jnp.where(goes, other, arm), jnp.where(goes, loads[other] + 1, loads[arm]), ~goes)


def _scores(
    problem: Bandit, arm: Integer[Array, ""], gain: Float[Array, ""], level: Float[Array, ""]
) -> Float[Array, "choices"]:
    return (jax.nn.one_hot(arm, problem.arms + 1) - 1).at[-1].set(1 - gain - level)
