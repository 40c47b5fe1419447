"""Accuracy against τ as the stop of a team is moved, and τ at a given accuracy with its sampling error.

Moved are: the threshold of a learned stop on the margin of STOP over the best action, the level of a threshold on the
confidence, or the number of rounds of a fixed length. Before the stop nothing depends on them, so one episode in each
world, played past every stop, shows where each of them would have ended it.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from icmape.baselines.tuning import Watched, own_level, watch_team
from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.play.check_policy import check_own
from icmape.play.episodes import check_seed
from icmape.play.stop import LearnedStop
from icmape.play.team import Team
from icmape.problem import Problem, Unreliable

LEVELS = 121  # points of a curve
POWER = 1.5  # of their spacing in τ: they lie closer together where τ is small
RESAMPLES = 1_000
AT_ONCE = 50  # resamples in memory
MOST_MISSING = 0.025  # fraction of resamples that may miss the target if an error is given
APART = 0.5  # accuracies further apart than this are not joined by a line: no stop between them was measured


class CurvePoint(NamedTuple):
    """τ and accuracy with one value of the parameter of a stop (a threshold, a level or a number of rounds)."""

    parameter: float
    tau: float
    accuracy: float


def tau_at(points: Sequence[CurvePoint], accuracy: float) -> float | None:
    """The τ at which a curve first reaches an accuracy, by linear interpolation; None if it does not.

    Interpolation has a meaning: a team that draws before each episode which of two neighbouring thresholds it uses.
    """
    ordered = sorted(points, key=lambda point: point.tau)
    taus, accuracies = (np.array([[getattr(point, name) for point in ordered]]) for name in ("tau", "accuracy"))
    tau = float(_crossings(taus, accuracies, accuracy)[0])
    return None if math.isnan(tau) else tau


def joined(points: Sequence[CurvePoint]) -> list[list[CurvePoint]]:
    """The points of a curve by τ, in the parts that a line may join: rules have levels between which accuracy jumps."""
    ordered = sorted(points, key=lambda point: point.tau)
    jumps = [n for n in range(1, len(ordered)) if abs(ordered[n].accuracy - ordered[n - 1].accuracy) > APART]
    return [ordered[start:end] for start, end in itertools.pairwise([0, *jumps, len(ordered)])]


@dataclass(frozen=True)
class StopCurve:
    """The curve of a team, its own point, and τ at the target in the worlds and in bootstrap resamples of them."""

    points: tuple[CurvePoint, ...]
    own: CurvePoint | None  # with the stop that the team has
    target: float  # 1-δ
    tau: float | None  # at the target; None if no threshold reaches it
    resampled: tuple[float, ...]  # NaN where the resample does not reach the target; empty if the curve is computed
    resamples: str  # name: resamples of the same name draw the same worlds
    episodes: int
    seed: int

    @property
    def best(self) -> CurvePoint:
        """The point with the highest accuracy."""
        return max(self.points, key=lambda point: point.accuracy)

    @property
    def exact(self) -> bool:
        """Whether its accuracies are computed and not sampled."""
        return self.episodes == 0

    @property
    def bounded(self) -> bool:
        """Whether nearly all resamples reach the target, so that τ there has an interval."""
        return self.tau is not None and bool(np.mean(np.isnan(self.resampled or (0.0,))) <= MOST_MISSING)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "points": [[float(f"{value:.6g}") for value in point] for point in self.points],
            "own": self.own and list(self.own),
            "target": self.target,
            "tau": self.tau,
            "resampled": " ".join(f"{tau:.4f}" for tau in self.resampled),  # one line of a file
            "resamples": self.resamples,
            "episodes": self.episodes,
            "seed": self.seed,
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> StopCurve:
        """The inverse of `to_dict`, up to rounding."""
        points = tuple(CurvePoint(*point) for point in values["points"])
        resampled = tuple(map(float, values["resampled"].split()))
        own = values["own"] and CurvePoint(*values["own"])
        return StopCurve(**{**values, "points": points, "own": own, "resampled": resampled})


def stop_curve(
    team: Team,
    *,
    episodes: int = 10_000,
    seed: int = 0,
    target: float | None = None,
    tick: Callable[[int], None] | None = None,
) -> StopCurve:
    """Play a team past its stop in the worlds of an evaluation, and read off τ at the target (default: 1-δ).

    No stop is set on these worlds: training and tuning use others.
    """
    if episodes < 1:
        raise UserError(f"a curve needs at least one episode; given {episodes}")
    if target is not None and not 0 < target < 1:
        raise UserError(f"the target is an accuracy between 0 and 1; given {target}")
    check_seed(seed)
    check_own(team)
    if fault := why_no_curve(team):
        raise UserError(fault)
    use_compilation_cache()
    watched = watch_team(team, episodes, seed, tick)
    return curve_of(watched, 1 - team.delta if target is None else target, seed, own=own_level(team))


def why_no_curve(team: Team) -> str | None:
    """Why a team has no curve: under some failures, other things than the stop differ once the stop is moved."""
    problem = team.problem
    learned = isinstance(team.stop, LearnedStop)  # others stop all agents at once, which is never late
    if learned and not problem.stops_at_once:
        return (
            "a team whose stop bits may come late has no curve: what agents do after a stop depends on where it is set"
        )
    if falls_silent(problem) and not learned:
        return (
            f"a team whose agents fall silent, with a stop by {team.stop.kind}, has no curve: its STOP may not be heard"
        )
    return None


def falls_silent(problem: Problem) -> bool:
    """Whether the STOP of an agent may not be heard because it fell silent."""
    return isinstance(problem, Unreliable) and problem.rates["silent"] > 0


def curve_of(
    watched: Watched, target: float, seed: int, *, own: float | None = None, highest: float = math.inf
) -> StopCurve:
    """The curve of played episodes, up to the highest level that they show.

    A stop with two values (stop or go on) cannot be moved: its curve is its own point, and nothing is read off.
    """
    count = len(watched.stop)
    own_point = None if own is None else CurvePoint(*watched.at(own))._replace(parameter=round(own, 9))
    if own_point is not None and len(np.unique(watched.statistic)) <= 2:
        return StopCurve((own_point,), own_point, target, None, (), "", count, seed)
    levels = _levels(watched, highest)
    stops = np.stack([watched.stops(float(level)) for level in levels], axis=1)
    new = np.diff(stops.sum(axis=0), prepend=-1) > 0  # some levels end all episodes where the one before does
    levels, stops = levels[new], stops[:, new]
    right = np.take_along_axis(np.asarray(watched.right), stops, axis=1).astype(np.float32)
    taus = stops.astype(np.float32) + 1
    points = tuple(
        CurvePoint(float(level), float(tau), float(accuracy))
        for level, tau, accuracy in zip(
            levels, taus.mean(axis=0, dtype=np.float64), right.mean(axis=0, dtype=np.float64), strict=True
        )
    )
    name, resampled = _resampled(taus, right, target, seed)
    return StopCurve(points, own_point, target, tau_at(points, target), resampled, name, count, seed)


def computed_curve(points: Sequence[tuple[float | int, float, float]], target: float, seed: int = 0) -> StopCurve:
    """A curve without sampling error."""
    curve = tuple(CurvePoint(*map(float, point)) for point in points)
    return StopCurve(curve, None, target, tau_at(curve, target), (), "", 0, seed)


def _levels(watched: Watched, highest: float) -> np.ndarray:
    """Levels whose τ are spread over all rounds: the mean τ grows linearly with the share of values below a level."""
    largest = float(np.finfo(np.float32).max) / 4
    values = np.clip(watched.statistic, -largest, min(highest, largest))
    distinct = np.unique(values)
    if len(distinct) > LEVELS:
        shares = np.linspace(0, 1, LEVELS) ** POWER
        distinct = np.unique(np.quantile(values, shares, method="midpoint").astype(np.float32))
    above = np.nextafter(distinct[-1], np.float32(np.inf), dtype=np.float32)  # never stop
    return distinct if distinct[-1] >= highest else np.append(distinct, above)


def _resampled(taus: np.ndarray, right: np.ndarray, target: float, seed: int) -> tuple[str, tuple[float, ...]]:
    """τ at the target in each resample of the worlds, and the name of the resamples."""
    count, digest, found = len(taus), 0, []
    for weights in _weights(count):
        digest = zlib.crc32(weights.tobytes(), digest)
        shares = weights.astype(np.float32) / np.float32(count)
        found.append(_crossings(shares @ taus, shares @ right, target))
    name = f"{RESAMPLES:,} of {count:,} worlds, seed {seed}, {digest:08x}"
    return name, tuple(np.concatenate(found).tolist())


def _weights(count: int) -> Iterator[np.ndarray]:
    """How often each world is drawn, the same for every method that was played in as many worlds."""
    chance = np.random.default_rng(count)
    for _ in range(RESAMPLES // AT_ONCE):
        drawn = chance.integers(0, count, (AT_ONCE, count))
        yield np.stack([np.bincount(row, minlength=count) for row in drawn]).astype(np.uint8)


def _crossings(taus: np.ndarray, accuracies: np.ndarray, target: float) -> np.ndarray:
    """The τ at which each row first reaches the target, between two columns; NaN if it does not."""
    rows = np.arange(len(taus))
    reached = accuracies >= target
    after = np.argmax(reached, axis=1)
    before = np.maximum(after - 1, 0)
    low, high = accuracies[rows, before], accuracies[rows, after]
    share = np.where(after == before, 0.0, (target - low) / np.where(after == before, 1.0, high - low))
    found = taus[rows, before] + share * (taus[rows, after] - taus[rows, before])
    return np.where(reached.any(axis=1), found, np.nan)
