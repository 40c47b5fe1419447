"""Sessions of a team in fresh worlds of its prior, as they would have been recorded."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from icmape.evaluation.prior_check.recorded import Recorded, agent_actions, agent_parts, inner_rows
from icmape.play.episodes import Episodes, confidence_at_stop, play_parts
from icmape.play.inference import TeamInference
from icmape.play.missing import Marks, inner_agents, received, says_missing
from icmape.play.policy import Round
from icmape.play.rollout import Episode
from icmape.play.stop import LearnedStop
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.unreliable import Received, takes_missing
from icmape_agent.session.statistics import Sessions, Words, statistics

Values = Float[np.ndarray, "groups statistics"]


class Script(eqx.Module):
    """A policy that repeats recorded actions, and stops behind them."""

    actions: Int[Array, "rounds agents"]
    rounds: Int[Array, ""]
    choices: int = eqx.field(static=True)
    takes: str = eqx.field(static=True, default="all")

    def start(self) -> tuple:
        """No state."""
        return ()

    def decide(
        self, state: tuple, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[PyTree, Float[Array, "agents choices"]]:
        """The recorded action of every agent, or STOP."""
        row = self.actions[jnp.minimum(seen.number, self.actions.shape[0] - 1)]
        chosen = jnp.where(seen.number >= self.rounds, self.choices - 1, row)
        return state, jax.nn.one_hot(chosen, self.choices)


class Place(NamedTuple):
    """What simulated sessions in the place of a recorded one have in common with it."""

    cut: int | None  # rounds, if the team did not end it
    arrived: Bool[np.ndarray, "rounds agents"]
    acted: Bool[np.ndarray, "rounds agents"]
    counts: Bool[np.ndarray, "rounds"]  # whether the answer reads a round

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return bool(self.counts.all() and self.arrived.all() and self.acted.all())


def simulate(
    team: Team,
    sessions: Sequence[Recorded],
    words: Words,
    groups: int,
    seed: int,
    tick: Callable[[int], None] | None = None,
) -> list[Values]:
    """For each recorded session, the statistics of simulated ones: `groups` of them, or as many as last long enough.

    Simulated sessions lack the readings and rounds that the answer of the recorded one lacks. If the team did not end
    the recorded session, they are those that last as long, cut at that round. If it was overruled, they repeat its
    actions.
    """
    free = [row for row in sessions if not row.overruled]
    values = iter(_stream(team, free, words, groups, seed, tick) if free else [])
    ordered = []
    for number, row in enumerate(sessions):
        if row.overruled:
            script = Script(jnp.asarray(_rounds_of(row, team.problem)), jnp.int32(row.rounds), team.problem.actions + 1)
            scripted = replace(team, policy=script, stop=LearnedStop())
            ordered += _stream(scripted, [replace(row, ended=True)], words, groups, seed + 1 + number, tick)
        else:
            ordered.append(next(values))
    return ordered


def alike(team: Team, sessions: Sequence[Recorded]) -> list[int]:
    """For each recorded session, the first one whose simulated sessions come about in the same way."""
    first: dict[tuple, int] = {}
    fails = says_missing(team.problem)
    numbers = []
    for number, row in enumerate(sessions):
        place = _place(row, fails)
        key = (place.cut, *(marks.tobytes() for marks in place[1:]), number if row.overruled else None)
        numbers.append(first.setdefault(key, number))
    return numbers


def _rounds_of(row: Recorded, problem: Problem) -> Int[np.ndarray, "rounds agents"]:
    out = np.zeros((problem.horizon, problem.agents), np.int32)
    out[: len(row.joint)] = row.joint
    return out


def _stream(
    team: Team, sessions: Sequence[Recorded], words: Words, groups: int, seed: int, tick: Callable[[int], None] | None
) -> list[Values]:
    """Worlds are dealt out to the recorded sessions in turn, so that no simulated session counts twice."""
    places = [_place(row, says_missing(team.problem)) for row in sessions]
    kept: list[list[Values]] = [[] for _ in places]
    begun = 0
    for part in play_parts(team, groups * len(places), seed, tick, exact=0):
        count = len(part.played.stop)
        turn = (begun + np.arange(count)) % len(places)
        begun += count
        lasts, played = _as_recorded(team, part, [places[number] for number in turn])
        rows = np.stack([statistic.values for statistic in statistics(played, words)], axis=1)
        for number, values in enumerate(kept):
            values.append(rows[lasts & (turn == number)])
    return [np.concatenate(values) for values in kept]


def _place(row: Recorded, fails: bool) -> Place:
    """The place of a recorded session. Where the problem itself lets readings get lost, no others are left out.

    Of rounds that the recorded session does not reach, what its last round lacks is left out.
    """
    arrived, acted = (marks[0, : row.rounds] for marks in (row.sessions.arrived, row.sessions.acted))
    counts, length = row.counts, row.sessions.acted.shape[1]
    lacks = fails | ~counts[:, None]  # a round that does not count lacks nothing else
    here, did = (_onwards(each | lacks, length) for each in (arrived, acted))
    return Place(None if row.ended else row.rounds, here, did, _onwards(counts, length))


def _onwards(rows: Bool[np.ndarray, "rounds *agents"], length: int) -> Bool[np.ndarray, "length *agents"]:
    """Rows up to a length, the last one repeated."""
    last = rows[-1:] if len(rows) else np.ones((1, *rows.shape[1:]), bool)
    return np.concatenate([rows, np.repeat(last, length - len(rows), axis=0)])


def _as_recorded(team: Team, part: Episodes, places: Sequence[Place]) -> tuple[Bool[np.ndarray, "sessions"], Sessions]:
    """Whether simulated sessions last as long as those in whose places they are, and their data."""
    problem = team.problem
    stop = np.asarray(part.played.stop)
    cut = np.array([problem.horizon if place.cut is None else place.cut for place in places])
    rounds = np.minimum(stop, cut)
    counts = np.stack([place.counts for place in places])
    going = ((np.arange(problem.horizon - 1) < rounds[:, None]) & counts)[..., None]
    readings, acted, arrived = _readings(problem, part.played.observations)
    actions = agent_actions(problem, np.asarray(part.played.actions)[:, :-1])
    everyone = np.ones(actions.shape, bool)
    acted, arrived = (everyone if marks is None else marks for marks in (acted, arrived))
    return (stop >= cut) | np.array([place.cut is None for place in places]), Sessions(
        actions,
        readings,
        acted & going & np.stack([place.acted for place in places]),
        arrived & going & np.stack([place.arrived for place in places]),
        rounds,
        _confidence(team, part, places, rounds),
    )


def _confidence(
    team: Team, part: Episodes, places: Sequence[Place], rounds: Int[np.ndarray, "sessions"]
) -> Float[np.ndarray, "sessions"]:
    """The confidence of the answers that read as much of simulated sessions as those of recorded ones did."""
    of_all = np.asarray(part.team.confidence)[np.arange(len(rounds)), rounds]
    whole = np.array([place.whole for place in places])
    if whole.all():
        return of_all
    told = confidence_at_stop(*_told(team, part.played, places, rounds))
    return np.where(whole, of_all, np.asarray(told))


def _told(
    team: Team, played: Episode, places: Sequence[Place], rounds: Int[np.ndarray, "sessions"]
) -> tuple[Problem, TeamInference, Episode]:
    """The data that answers read: rounds that do not count are left out, as in `Team.posterior`."""
    counts, arrived, acted = (
        np.stack([marks(place) for place in places])
        for marks in (lambda place: place.counts, lambda place: place.arrived, lambda place: place.acted)
    )
    order = np.argsort(~counts, axis=1, kind="stable")  # of rounds of readings
    stop = (counts & (np.arange(counts.shape[1]) < rounds[:, None])).sum(axis=1)
    row = np.arange(len(rounds))[:, None]
    seen = jax.tree.map(lambda x: np.asarray(x)[row, np.pad(order + 1, ((0, 0), (1, 0)))], played.observations)
    actions = np.asarray(played.actions)[row, np.pad(order, ((0, 0), (0, 1)), constant_values=counts.shape[1])]
    problem = team.problem
    if not says_missing(problem) and not (arrived.all() and acted.all()):
        problem = takes_missing(problem)
        here, did = (np.pad(x[row, order], ((0, 0), (1, 0), (0, 0)), constant_values=True) for x in (arrived, acted))
        shape = (*actions.shape, *inner_agents(problem))
        marks = Marks(did.reshape(shape), here.reshape(shape))
        seen = received(problem, jax.tree.map(lambda x: _where(marks.arrived, x), seen), marks)
    return problem, team.inference, played._replace(actions=jnp.asarray(actions), observations=seen, stop=stop)


def _where(here: Bool[np.ndarray, "*marks"], values: np.ndarray) -> np.ndarray:
    """Zero where a reading is missing."""
    return np.where(here.reshape(*here.shape, *(1,) * (values.ndim - here.ndim)), values, np.zeros_like(values))


def as_played(team: Team, part: Episodes) -> Sessions:
    """The data of simulated sessions, with all that the problem let arrive."""
    whole = np.ones((team.problem.horizon - 1, team.problem.agents), bool)
    place = Place(None, whole, whole, whole[:, 0])
    return _as_recorded(team, part, [place] * len(part.played.stop))[1]


def _readings(problem: Problem, observations: PyTree) -> tuple[list[np.ndarray], Any, Any]:
    """Readings of the rounds, and the marks of problems that say what is missing."""
    later = jax.tree.map(lambda seen: np.asarray(seen)[:, 1:], observations)
    batch = jax.tree.leaves(later)[0].shape[:2]

    def flat(tree: PyTree) -> PyTree:
        return jax.tree.map(lambda seen: seen.reshape(-1, *seen.shape[2:]), tree)

    def back(rows: np.ndarray) -> np.ndarray:
        return rows.reshape(*batch, *rows.shape[1:])

    reading = later.reading if isinstance(later, Received) else later
    parts = [back(rows) for rows in agent_parts(problem, flat(reading))]
    if not isinstance(later, Received):
        return parts, None, None
    acted, arrived = (back(inner_rows(problem, flat(marks))) for marks in (later.acted, later.arrived))
    return parts, acted, arrived
