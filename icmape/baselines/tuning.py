"""Accuracy and τ of a rule for every stopping level, from one set of episodes.

Before the stop, the statistic that a rule compares with its level does not depend on the level. Episodes with a high
level therefore show exactly where every lower level stops.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from icmape.play.episodes import COSTLY, THREADS, exact_by_default, play, watch_past_stops
from icmape.play.rollout import Episode, histories, policy_scores
from icmape.play.stop import FixedLength, Threshold
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.check import tree_bytes

TUNING_SEED = -1  # evaluations use seeds from 0
TUNING_WORLDS = 10_000
FEWER_WORLDS = 2_000  # if the exact posterior is costly
TRIAL_WORLDS = 2_000  # for comparing schedules


class Point(NamedTuple):
    """τ and accuracy of a rule with one value of its parameter (a number of rounds or a level)."""

    parameter: float | int
    tau: float
    accuracy: float


class Watched(NamedTuple):
    """Episodes that are long enough for every level of interest."""

    statistic: np.ndarray  # episodes rounds: running maximum of what is compared with the level
    right: np.ndarray  # episodes rounds: whether the answer is right, or its probability
    stop: np.ndarray  # episodes: the last round played

    def stops(self, level: float) -> Int[np.ndarray, "episodes"]:
        """The rounds in which episodes with this level end."""
        return np.minimum((self.statistic < np.float32(level)).sum(axis=1), self.stop)

    def at(self, level: float) -> Point:
        """τ and accuracy with this level."""
        stop = self.stops(level)
        return Point(level, float(stop.mean() + 1), float(self.right[np.arange(len(stop)), stop].mean()))


def watch(team: Team, ceiling: float, episodes: int, seed: int, smooth: bool = False) -> Watched:
    """Play episodes with the highest level of interest.

    `smooth` uses the team's confidence instead of its correctness. For an exact posterior both have the same mean, and
    the mean of the confidence has a much smaller standard error.
    """
    played = play(with_level(team, ceiling), episodes, seed)
    statistic = played.team.confidence
    if not by_confidence(team):
        statistic = _stop_scores(with_level(team, 0.0), played.played)
    right = played.team.confidence if smooth else played.team.correct
    return Watched(np.maximum.accumulate(statistic, axis=1), np.asarray(right), np.asarray(played.played.stop))


def watch_team(team: Team, episodes: int, seed: int, tick: Callable[[int], None] | None = None) -> Watched:
    """Play any team past its stops. The statistic is what its own stop compares with `own_level`."""
    past = watch_past_stops(team, episodes, seed, tick)
    count, rounds = past.correct.shape
    if isinstance(team.stop, FixedLength):
        statistic = np.broadcast_to(np.arange(rounds, dtype=np.float32), past.correct.shape)
    else:
        statistic = past.confidence if isinstance(team.stop, Threshold) else past.margin
    return Watched(np.maximum.accumulate(statistic, axis=1), past.correct, np.full(count, rounds - 1))


def own_level(team: Team) -> float:
    """The level of the stop of a team, among those of `watch_team`."""
    if isinstance(team.stop, FixedLength):
        return float(team.stop.rounds)
    # agents stop where the margin of STOP is above 0
    return team.stop.level if isinstance(team.stop, Threshold) else float(np.nextafter(np.float32(0), np.float32(1)))


def with_level(team: Team, level: float) -> Team:
    """The rule with another level."""
    if isinstance(team.stop, Threshold):
        return replace(team, stop=Threshold(level))
    return replace(team, policy=replace(team.policy, level=jnp.float32(level)))


def by_confidence(team: Team) -> bool:
    """Whether the level is compared with the confidence of the team's inference."""
    return isinstance(team.stop, Threshold) or bool(getattr(team.policy, "stops_by_confidence", False))


def every_length(team: Team, episodes: int, seed: int, smooth: bool = False) -> list[Point]:
    """A team stopped after 1, 2 ... rounds of data, from one set of episodes. `smooth` as for `watch`."""
    horizon = team.problem.horizon
    judged = play(replace(team, stop=FixedLength(horizon - 1)), episodes, seed).team
    right = (judged.confidence if smooth else judged.correct).mean(axis=0)
    return [Point(n, n + 1.0, float(right[n])) for n in range(1, horizon)]


def every_level(team: Team, episodes: int, seed: int) -> list[Point]:
    """A team stopped at every level of `levels`, from one set of episodes."""
    watched = watch_levels(team, episodes, seed)
    return [watched.at(level) for level in levels(team)]


def watch_levels(team: Team, episodes: int, seed: int) -> Watched:
    """Play episodes that show every level of `levels`."""
    return watch(team, levels(team)[-1], episodes, seed)


def tune(team: Team, worlds: int | None = None) -> float | None:
    """The smallest level that reaches accuracy 1-δ on tuning worlds, if there is one."""
    point = _just_enough(team, worlds or tuning_worlds(team.problem))
    return None if point is None else point.parameter


def tuning_worlds(problem: Problem) -> int:
    """Number of worlds for tuning a level."""
    costly = exact_by_default(problem) < TUNING_WORLDS
    return min(TUNING_WORLDS, FEWER_WORLDS) if costly else TUNING_WORLDS


def fastest(make: Callable[[Any], Team], candidates: Iterable[Any]) -> Team:
    """The candidate that reaches accuracy 1-δ with the smallest τ; the last one if none does."""
    teams = [make(candidate) for candidate in candidates]
    points = [_just_enough(team, TRIAL_WORLDS) for team in teams]
    taus = [np.inf if point is None else point.tau for point in points]
    return teams[int(np.argmin(taus))] if np.isfinite(min(taus)) else teams[-1]


def levels(team: Team) -> list[float]:
    """Levels of the points of a curve, evenly spaced in log(1 - level)."""
    widest, finest = (0.9, 0.005) if by_confidence(team) else (0.3, 0.0005)
    return [_level(log_left) for log_left in np.linspace(np.log(widest), np.log(finest), 40)]


def _just_enough(team: Team, worlds: int) -> Point | None:
    """Raise the level until it suffices, then bisect for the smallest sufficient one."""
    target, smooth = 1 - team.delta, team.problem.posterior == "exact"
    shares = (1, 10) if by_confidence(team) else (20, 200)  # level = 1 - δ / share
    for share in shares:
        highest = 1 - team.delta / share
        watched = watch(team, highest, worlds, TUNING_SEED, smooth)
        if watched.at(highest).accuracy >= target:
            return _smallest(watched, 1 - team.delta / max(share, 10), target)  # higher levels give the same point
    return None


def _smallest(watched: Watched, enough: float, target: float) -> Point:
    """Bisection in log(1 - level); accuracy increases with the level."""
    low, high = 0.0, float(np.log(1 - enough))
    for _ in range(14):
        middle = (low + high) / 2
        reached = watched.at(_level(middle)).accuracy >= target
        low, high = (low, middle) if reached else (middle, high)
    return watched.at(_level(high))


def _level(log_left: float) -> float:
    return round(1 - float(f"{np.exp(log_left):.3g}"), 9)


def _stop_scores(team: Team, episodes: Episode) -> Float[np.ndarray, "episodes rounds"]:
    """The largest score of STOP among the agents, in every played round."""
    count = len(episodes.stop)
    size = -(-count // THREADS)
    starts = [min(first, count - size) for first in range(0, count, size)]  # parts of equal size: the last may overlap

    def part(first: int) -> np.ndarray:
        rows = jax.tree.map(lambda x: x[first : first + size], episodes)
        return np.asarray(_replayed(team.problem, team.policy, rows))

    largest = np.zeros(np.shape(episodes.explored), np.float32)
    with ThreadPoolExecutor(THREADS) as pool:
        for first, scores in zip(starts, pool.map(part, starts), strict=True):
            largest[first : first + size] = scores
    return largest


@eqx.filter_jit
def _replayed(problem: Problem, policy: Any, episodes: Episode) -> Float[Array, "episodes rounds"]:
    """Sequential if the state of the policy is large, else in batches."""
    together = 500 if tree_bytes(jax.eval_shape(policy.start)) <= COSTLY else 1
    longest = jnp.max(episodes.stop) + 1

    def replay(episode: Episode) -> Float[Array, "rounds"]:
        played = longest if together > 1 else episode.stop + 1
        return jnp.max(policy_scores(problem, policy, episode, histories(problem, episode), played)[..., -1], axis=1)

    return jax.lax.map(replay, episodes, batch_size=together if together > 1 else None)
