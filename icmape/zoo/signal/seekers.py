"""Greedy search for the source, on an agent's own data or on all agents' data.

The worth of a position is the probability of every cell, discounted by the moves until a window covers it. Scores are 0
for the chosen move, -1 for the others, and positive for STOP when it is time to stop.
"""

import math
from abc import abstractmethod
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float16, Int, Int8, Integer, Key

from icmape.play.inference import ExactInference
from icmape.play.policy import LocalPolicy, Round
from icmape.problem import Features
from icmape.zoo.signal.field_posterior import SourceBelief
from icmape.zoo.signal.signal import STAY, Signal, SignalObservation
from icmape.zoo.signal.tours import NEVER, Tours, moves_until_seen, moves_until_toured

DISCOUNT = 0.6  # of a move
IN_LINE = 0.5  # worth of a cell outside the field agent's window, in one of its rows or columns
CLEAR = 3.0  # standard deviations of a clear signal


class FieldMind(NamedTuple):
    """Memory of the field agent: its posterior, and the sum of its readings, from which new ones are found."""

    belief: SourceBelief
    total: Float[Array, "rows columns"]


class Seekers(LocalPolicy):
    """Detectors on fixed tours that stop after a detection, and a field agent with its own posterior.

    As no detector has stopped, the field agent counts the windows on their tours as misses, including those of this
    round: after a detection the episode ends whatever the field agent chooses. Without a detection, its posterior is
    therefore that of all agents' data.
    """

    stops_by_confidence: ClassVar[bool] = True
    takes_missed: ClassVar[bool] = False
    problem: Signal
    moves: Int8[Array, "rounds touring"]
    positions: Int8[Array, "times touring 2"]
    level: Float[Array, ""]

    @abstractmethod
    def heads(
        self, chances: Float[Array, "cells"], position: Int[Array, "2"], number: Integer[Array, ""]
    ) -> Int[Array, ""]:
        """Move of the field agent, given the probability of every cell."""

    @property
    def agents(self) -> int:
        """As many as the problem has."""
        return self.problem.agents

    def start_agent(self) -> FieldMind:
        """The prior."""
        return FieldMind(self.problem.belief(), jnp.zeros((self.problem.grid, self.problem.grid)))

    def start(self) -> FieldMind:
        """The memory of the field agent."""
        return self.start_agent()

    def decide_agent(
        self,
        state: FieldMind,
        agent: Integer[Array, ""],
        view: Features,
        number: Integer[Array, ""],
        *,
        key: Key[Array, ""],
    ) -> tuple[FieldMind, Float[Array, "choices"]]:
        """As a detector, or as the field agent."""
        return jax.lax.cond(
            agent == self.problem.detectors,
            lambda: self.seek(state, view, number),
            lambda: (state, self.tour(agent, view, number)),
        )

    def decide(
        self, state: FieldMind, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[FieldMind, Float[Array, "agents choices"]]:
        """The same for all agents, with a single posterior."""
        detecting = jax.tree.map(lambda x: x[:-1], seen.views)
        agents = jnp.arange(self.problem.detectors)
        touring = jax.vmap(lambda agent, view: self.tour(agent, view, seen.number))(agents, detecting)
        state, seeking = self.seek(state, jax.tree.map(lambda x: x[-1], seen.views), seen.number)
        return state, jnp.concatenate([touring, seeking[None]])

    def tour(self, agent: Integer[Array, ""], view: Features, number: Integer[Array, ""]) -> Float[Array, "choices"]:
        """A detector: the next move of its tour, or STOP."""
        detected = jnp.max(_maps(view)[0]) > 0
        return scores(self.problem, self._toured(number, agent), detected.astype(jnp.float32), self.level)

    def seek(
        self, mind: FieldMind, view: Features, number: Integer[Array, ""]
    ) -> tuple[FieldMind, Float[Array, "choices"]]:
        """The field agent: its move, or STOP."""
        mind, position = self.take_in(mind, view, number)
        chances = jnp.exp(self.problem.log_posterior(mind.belief))
        heading = self.heads(chances, position, number)
        return mind, scores(self.problem, heading, jnp.max(chances), self.level)

    def take_in(self, mind: FieldMind, view: Features, number: Integer[Array, ""]) -> tuple[FieldMind, Int[Array, "2"]]:
        """Update with the newest window, from the difference of the maps; also returns its position."""
        problem, (mean, queries) = self.problem, _maps(view)
        own_index = problem.detectors if problem.information == "shared-positions" else 0
        position = jnp.argmax(view.token[:-1].reshape(-1, 2, problem.grid)[own_index], axis=1).astype(jnp.int8)
        total = mean * queries
        looked = (number > 0) | problem.observe_start
        readings = problem.field_readings(_window_of(problem, total - mind.total, position), position)
        belief = problem.field.read(mind.belief, readings._replace(inside=readings.inside & looked))
        nothing = jnp.zeros((problem.detectors, problem.window, problem.window), jnp.float16)
        missed = problem.detectors_say(nothing, self.positions[number, : problem.detectors])
        belief = belief._replace(detectors=belief.detectors + jnp.where(looked, missed, 0.0))
        return FieldMind(belief, total), position.astype(jnp.int32)

    def _toured(self, number: Integer[Array, ""], agent: Integer[Array, ""] | int) -> Int[Array, ""]:
        return self.moves[jnp.minimum(number, self.moves.shape[0] - 1), agent].astype(jnp.int32)


class LocalSweep(Seekers):
    """The field agent follows a tour as well."""

    kind: Literal["sweep-local-stop"] = eqx.field(static=True, default="sweep-local-stop")

    def heads(
        self, chances: Float[Array, "cells"], position: Int[Array, "2"], number: Integer[Array, ""]
    ) -> Int[Array, ""]:
        """The next move of its tour."""
        return self._toured(number, -1)


class LocalGreedy(Seekers):
    """The field agent goes to likely cells that the others' tours do not cover sooner."""

    toured: Int8[Array, "times cells"]  # moves until one of the others sees a cell
    worth: Float[Array, "rows columns cells"]  # of a cell to the field agent, wherever it is
    kind: Literal["local-greedy"] = eqx.field(static=True, default="local-greedy")

    def heads(
        self, chances: Float[Array, "cells"], position: Int[Array, "2"], number: Integer[Array, ""]
    ) -> Int[Array, ""]:
        """The move with the largest worth."""
        by_others = DISCOUNT ** self.toured[number].astype(jnp.float32)
        by_itself = DISCOUNT * after_moves(self.problem, self.worth, position)
        return jnp.argmax(jnp.maximum(by_itself, by_others[None]) @ chances)


class SignalCentral(eqx.Module):
    """Team scope: uses all readings, and the best of all joint moves."""

    stops_by_confidence: ClassVar[bool] = True
    problem: Signal
    worth: Float[Array, "agents rows columns cells"]
    level: Float[Array, ""]
    kind: Literal["central-greedy"] = eqx.field(static=True, default="central-greedy")

    def start(self) -> SourceBelief:
        """The prior."""
        return self.problem.belief()

    def decide(
        self, state: SourceBelief, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[SourceBelief, Float[Array, "agents choices"]]:
        """Moves of all agents; STOP when the posterior reaches the level."""
        problem = self.problem
        belief, logs = ExactInference().step(problem, state, seen)
        chances = jnp.exp(logs)
        positions = own_positions(problem, seen.observation).astype(jnp.int32)
        worth = jax.vmap(partial(after_moves, problem))(self.worth, positions)
        best = worth[0]
        for agent_worth in worth[1:]:  # joint moves in the order of the digits of their number
            best = jnp.maximum(best[:, None], agent_worth[None]).reshape(-1, chances.shape[0])
        joint = jnp.unravel_index(jnp.argmax(best @ chances), (STAY,) * problem.agents)
        moves = jnp.stack(joint).astype(jnp.int32)
        return belief, jax.vmap(lambda move: scores(problem, move, jnp.max(chances), self.level))(moves)


def local_sweep(problem: Signal, tours: Tours) -> LocalSweep:
    """With these tours; the level is set later."""
    return LocalSweep(problem, *_stored(tours), jnp.float32(0))


def local_greedy(problem: Signal, tours: Tours) -> LocalGreedy:
    """The same, with tours of the detectors only."""
    toured = jnp.asarray(moves_until_toured(problem, tours), jnp.int8)
    return LocalGreedy(problem, *_stored(tours), jnp.float32(0), toured, jnp.asarray(field_worth(problem)))


def signal_central(problem: Signal) -> SignalCentral:
    """The level is set later."""
    worth = [window_worth(problem, agent) for agent in range(problem.detectors)] + [field_worth(problem)]
    shape = np.max([table.shape for table in worth], axis=0)
    padded = [
        np.pad(table, [(0, length - size) for length, size in zip(shape, table.shape, strict=True)]) for table in worth
    ]
    return SignalCentral(problem, jnp.asarray(np.stack(padded)), jnp.float32(0))


def window_worth(problem: Signal, agent: int, arm: int = 0) -> Float[np.ndarray, "rows columns cells"]:
    """Worth of a cell to an agent at each position: 1 inside the window, discounted by the moves until then."""
    moves = moves_until_seen(problem, agent, arm)
    return np.where(moves < NEVER, DISCOUNT ** moves.astype(np.float32), 0).astype(np.float32)


def field_worth(problem: Signal) -> Float[np.ndarray, "rows columns cells"]:
    """Worth to the field agent, which also gets information on cells in its window's rows and columns.

    Their distances differ between cells of the window. Cells across a corner are less informative: a whole diagonal of
    them has the same distance.
    """
    arm = max(0, int(-math.log(CLEAR * float(problem.noise)) / float(problem.decay)))
    seen, in_line = (window_worth(problem, problem.detectors, reach) for reach in (0, arm))
    return (1 - IN_LINE) * seen + IN_LINE * np.maximum(seen, in_line)


def after_moves(
    problem: Signal, worth: Float[Array, "rows columns cells"], position: Int[Array, "2"]
) -> Float[Array, "moves cells"]:
    """Worth of cells to an agent after each of its moves."""
    positions = jnp.broadcast_to(position.astype(jnp.int8), (STAY, 2))
    row, column = (problem.moved(positions, jnp.arange(STAY)) // problem.move).astype(jnp.int32).T
    return worth[row, column]


def own_positions(problem: Signal, seen: SignalObservation) -> Int8[Array, "agents 2"]:
    """Positions of all agents."""
    return jnp.diagonal(seen.positions).T if problem.information == "shared-positions" else seen.positions[:, 0]


def scores(
    problem: Signal, move: Integer[Array, ""], sure: Float[Array, ""], level: Float[Array, ""]
) -> Float[Array, "choices"]:
    """0 for the chosen move, -1 for the others, and the excess of the confidence over the level for STOP."""
    return (jax.nn.one_hot(move, problem.actions + 1) - 1).at[-1].set(sure - level)


def _maps(view: Features) -> Float[Array, "2 rows columns"]:
    assert view.grid is not None  # the problem's views have one
    return view.grid


def _window_of(
    problem: Signal, gained: Float[Array, "rows columns"], position: Int8[Array, "2"]
) -> Float16[Array, "m m"]:
    """A window as it was stored: differences near 0 or 1 are rounded, as clipped readings are exact."""
    rows, columns, inside = problem.window_at(position)
    values = jnp.where(inside, gained[rows, columns], 0.0)
    end = jnp.round(values)
    return jnp.where(jnp.abs(values - end) < 1e-5, end, values).astype(jnp.float16)


def _stored(tours: Tours) -> tuple[Int8[Array, "rounds touring"], Int8[Array, "times touring 2"]]:
    return jnp.asarray(tours.moves, jnp.int8), jnp.asarray(tours.positions, jnp.int8)
