"""Robustness: a team under priors other than that of its training."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.evaluation.calibration import calibration_error
from icmape.evaluation.intervals import wilson_interval
from icmape.evaluation.methods import Tick
from icmape.play.episodes import Episodes, play
from icmape.play.team_files import load
from icmape.problem import Problem
from icmape.problem.entry import entry_of
from icmape.problem.spec import check_changes


@dataclass(frozen=True)
class Sweep:
    """Arguments of a problem and their values, of which every combination is played."""

    name: str
    axes: Mapping[str, Sequence[Any]]
    labels: Mapping[str, str] = field(default_factory=dict)  # of the axes, for people
    logarithmic: bool = False  # whether a curve is drawn over a logarithmic axis

    def points(self) -> Iterator[dict[str, Any]]:
        """All combinations; the last argument varies fastest."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    @property
    def size(self) -> int:
        """Number of combinations."""
        return math.prod(map(len, self.axes.values()))

    def thinned(self, most: int) -> "Sweep":
        """A sweep with at most `most` values of each argument, including the first and the last."""
        return replace(self, axes={name: _thin(values, most) for name, values in self.axes.items()})


def _thin(values: Sequence[Any], most: int) -> Sequence[Any]:
    if len(values) <= most:
        return values
    places = {round(index * (len(values) - 1) / (most - 1)) for index in range(most)}
    return [values[place] for place in sorted(places)]


def sweeps_of(problem: Problem) -> tuple[Sweep, ...]:
    """The sweeps of the entry of a problem. Points that its sizes do not allow are skipped in `robustness`."""
    entry = entry_of(type(problem.unwrapped))
    sweeps: tuple[Sweep, ...] = () if entry is None else entry.part("sweeps", ())
    return sweeps


class SweepPoint(NamedTuple):
    """Metrics of a team with changed arguments of its problem."""

    changes: dict[str, Any]
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    tau: float
    tau_error: float
    forced: float
    ece: float
    confidence: float  # at the stop
    episodes: int


def robustness(
    source: str,
    sweep: Sweep,
    *,
    episodes: int,
    seed: int = 0,
    problem: type[Problem] | None = None,
    known: Sequence[SweepPoint] = (),
    tick: Tick | None = None,
    **changes: Any,
) -> Iterator[SweepPoint]:
    """Play a team file at every point of a sweep that its problem allows, except points in `known`."""
    if episodes < 1:
        raise UserError(f"a sweep needs at least one episode a point; given {episodes}")
    done = {_key(point.changes): point for point in known if point.episodes == episodes}
    for changed in sweep.points():
        result = done.get(_key(changed))
        if result is None:
            try:
                team = load(source, problem, **{**changes, **changed})
            except UserError:
                unchanged = load(source, problem, **changes)  # raises if the error is not caused by the sweep
                check_changes(type(unchanged.problem.unwrapped), changed)
                continue
            use_compilation_cache()
            result = sweep_point(changed, play(team, episodes, seed, exact=0), team.problem.horizon)
        if tick:
            tick(1)
        yield result


def sweep_point(changes: dict[str, Any], episodes: Episodes, horizon: int) -> SweepPoint:
    """The metrics of a team from its episodes with changed arguments."""
    correct, stop = episodes.at_stop(episodes.team.correct), episodes.played.stop
    exists = episodes.exists
    return SweepPoint(
        changes,
        float(correct.mean()),
        *wilson_interval(int(correct.sum()), len(correct)),
        float(stop.mean() + 1),
        float(stop.std() / math.sqrt(len(stop))),
        float((stop == horizon - 1).mean()),
        calibration_error(episodes.team.confidence[exists], episodes.team.correct[exists]),
        float(episodes.at_stop(episodes.team.confidence).mean()),
        len(correct),
    )


def _key(changes: Mapping[str, Any]) -> tuple:
    return tuple(sorted((name, str(value)) for name, value in changes.items()))
