"""Agents that go where the source is likely to be: each on its own data, or all on everyone's.

What a position is worth: the probability of every cell, discounted by the moves until somebody's window covers it.
Scores are 0 for the move to make, -1 for the others, and for STOP what is above 0 when it is time.
"""

import math
from abc import abstractmethod
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
IN_LINE = 0.5  # what a cell is worth that the field agent does not see, but whose row or column it does
CLEAR = 3.0  # standard deviations by which a signal stands out


class FieldMind(NamedTuple):
    """What the field agent remembers: its posterior, and the sum of its readings, to tell the new ones."""

    belief: SourceBelief
    total: Float[Array, "rows columns"]


class Seekers(LocalPolicy):
    """Detectors on fixed tours, each of which stops when it has detected; a field agent with a posterior of its own.

    As nobody else has stopped, the field agent reads the windows on the others' tours as misses. That includes those of
    this very round: if one of them holds a detection, the episode ends whatever the field agent chooses. Its posterior
    is then that of everyone's data, unless somebody has detected.
    """

    stops_by_confidence: ClassVar[bool] = True
    problem: Signal
    moves: Int8[Array, "rounds touring"]
    positions: Int8[Array, "times touring 2"]
    level: Float[Array, ""]

    @abstractmethod
    def heads(
        self, chances: Float[Array, "cells"], position: Int[Array, "2"], number: Integer[Array, ""]
    ) -> Int[Array, ""]:
        """Where the field agent goes, given the probability of every cell."""

    @property
    def agents(self) -> int:
        """As many as the problem has."""
        return self.problem.agents

    def start_agent(self) -> FieldMind:
        """The prior; detectors leave it at that."""
        return FieldMind(self.problem.belief(), jnp.zeros((self.problem.grid, self.problem.grid)))

    def start(self) -> FieldMind:
        """Only the field agent has something to remember."""
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
        """The same for all, with one posterior instead of one for each."""
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
        """The field agent: where it heads, or STOP."""
        mind, position = self.take_in(mind, view, number)
        chances = jnp.exp(self.problem.log_posterior(mind.belief))
        heading = self.heads(chances, position, number)
        return mind, scores(self.problem, heading, jnp.max(chances), self.level)

    def take_in(self, mind: FieldMind, view: Features, number: Integer[Array, ""]) -> tuple[FieldMind, Int[Array, "2"]]:
        """The newest window, which is what the maps have gained, and where it was seen."""
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
    """The field agent is on a tour as well."""

    kind: Literal["sweep-local-stop"] = eqx.field(static=True, default="sweep-local-stop")

    def heads(
        self, chances: Float[Array, "cells"], position: Int[Array, "2"], number: Integer[Array, ""]
    ) -> Int[Array, ""]:
        """The next move of its tour."""
        return self._toured(number, -1)


class LocalGreedy(Seekers):
    """The field agent goes where the others' tours will not find the source sooner."""

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
    """Team scope: everyone's readings in one head, and the best of all joint moves."""

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
        """Where everyone goes; STOP when the posterior is sure enough."""
        problem = self.problem
        belief, logs = ExactInference().step(problem, state, seen)
        chances = jnp.exp(logs)
        positions = own_positions(problem, seen.observation).astype(jnp.int32)
        worth = jax.vmap(lambda agent_worth, position: after_moves(problem, agent_worth, position))(
            self.worth, positions
        )
        best = worth[0]
        for agent_worth in worth[1:]:  # joint moves in the order of the digits of their number
            best = jnp.maximum(best[:, None], agent_worth[None]).reshape(-1, chances.shape[0])
        joint = jnp.unravel_index(jnp.argmax(best @ chances), (STAY,) * problem.agents)
        moves = jnp.stack(joint).astype(jnp.int32)
        return belief, jax.vmap(lambda move: scores(problem, move, jnp.max(chances), self.level))(moves)


def local_sweep(problem: Signal, tours: Tours) -> LocalSweep:
    """On these tours, with a level that is to be set."""
    return LocalSweep(problem, *_stored(tours), jnp.float32(0))


def local_greedy(problem: Signal, tours: Tours) -> LocalGreedy:
    """The same, the tours being those of the detectors."""
    toured = jnp.asarray(moves_until_toured(problem, tours), jnp.int8)
    return LocalGreedy(problem, *_stored(tours), jnp.float32(0), toured, jnp.asarray(field_worth(problem)))


def signal_central(problem: Signal) -> SignalCentral:
    """With a level that is to be set."""
    worth = [window_worth(problem, agent) for agent in range(problem.detectors)] + [field_worth(problem)]
    shape = np.max([table.shape for table in worth], axis=0)
    padded = [
        np.pad(table, [(0, length - size) for length, size in zip(shape, table.shape, strict=True)]) for table in worth
    ]
    return SignalCentral(problem, jnp.asarray(np.stack(padded)), jnp.float32(0))


def window_worth(problem: Signal, agent: int, arm: int = 0) -> Float[np.ndarray, "rows columns cells"]:
    """What a cell is worth to an agent, wherever it is: 1 when it is in the window, less the longer that takes."""
    moves = moves_until_seen(problem, agent, arm)
    return np.where(moves < NEVER, DISCOUNT ** moves.astype(np.float32), 0).astype(np.float32)


def field_worth(problem: Signal) -> Float[np.ndarray, "rows columns cells"]:
    """The field agent also learns of cells beyond its window: in the line of its rows or columns, as far as they tell.

    A source there is seen at a distance that differs from cell to cell of the window. From cells across the corner it
    is as far for a whole diagonal of places, so that these say little.
    """
    arm = max(0, int(-math.log(CLEAR * float(problem.noise)) / float(problem.decay)))
    seen, in_line = (window_worth(problem, problem.detectors, reach) for reach in (0, arm))
    return (1 - IN_LINE) * seen + IN_LINE * np.maximum(seen, in_line)


def after_moves(
    problem: Signal, worth: Float[Array, "rows columns cells"], position: Int[Array, "2"]
) -> Float[Array, "moves cells"]:
    """What cells are worth to an agent after each of its moves."""
    positions = jnp.broadcast_to(position.astype(jnp.int8), (STAY, 2))
    row, column = (problem.moved(positions, jnp.arange(STAY)) // problem.move).astype(jnp.int32).T
    return worth[row, column]


def own_positions(problem: Signal, seen: SignalObservation) -> Int8[Array, "agents 2"]:
    """Where everyone is."""
    return jnp.diagonal(seen.positions).T if problem.information == "shared-positions" else seen.positions[:, 0]


def scores(
    problem: Signal, move: Integer[Array, ""], sure: Float[Array, ""], level: Float[Array, ""]
) -> Float[Array, "choices"]:
    """0 for a move, and above it for STOP when something is surer than the level."""
    return (jax.nn.one_hot(move, problem.actions + 1) - 1).at[-1].set(sure - level)


def _maps(view: Features) -> Float[Array, "2 rows columns"]:
    assert view.grid is not None  # the problem's views have one
    return view.grid


def _window_of(
    problem: Signal, gained: Float[Array, "rows columns"], position: Int8[Array, "2"]
) -> Float16[Array, "m m"]:
    """A window as it was stored: what was clipped is exactly 0 or 1, as differences are not quite."""
    rows, columns, inside = problem.window_at(position)
    values = jnp.where(inside, gained[rows, columns], 0.0)
    end = jnp.round(values)
    return jnp.where(jnp.abs(values - end) < 1e-5, end, values).astype(jnp.float16)


def _stored(tours: Tours) -> tuple[Int8[Array, "rounds touring"], Int8[Array, "times touring 2"]]:
    return jnp.asarray(tours.moves, jnp.int8), jnp.asarray(tours.positions, jnp.int8)
