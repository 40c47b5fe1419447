"""Methods of a comparison: each pools one or more judged teams."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from icmape.evaluation.equal_accuracy import Compared, at_equal_accuracy
from icmape.evaluation.foreign import Outcomes
from icmape.evaluation.intervals import mean_interval, wilson_interval
from icmape.evaluation.metrics import Evaluation
from icmape.evaluation.stop_curves import CurvePoint, StopCurve, tau_at


@dataclass(frozen=True)
class Member:
    """One judged team of a method, and the cost of its training."""

    name: str
    evaluation: Evaluation
    seconds: float | None = None  # wall time of its run, shared by all seeds
    environment_steps: int | None = None
    provenance: dict[str, Any] = field(default_factory=dict)  # of the team
    outcomes: Outcomes | None = None  # of every episode, for external results
    curve: StopCurve | None = None  # of a team that was played

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        cost = {"seconds": self.seconds, "environment_steps": self.environment_steps}
        curve = {"stop_curve": self.curve.to_dict()} if self.curve else {}
        return {"team": self.name, **_known(self.evaluation.to_dict()), **cost, **curve, "provenance": self.provenance}


@dataclass(frozen=True)
class Method:
    """A way to train or build a team: mean and spread over its members (seeds), and a pooled interval."""

    name: str
    source: str
    members: tuple[Member, ...]
    remark: str = ""  # shown in the table

    def mean(self, column: str) -> float:
        """Mean over members of a column of their evaluations."""
        return statistics.fmean(self._values(column))

    def spread(self, column: str) -> float | None:
        """Standard deviation over members; None for a single one."""
        values = self._values(column)
        return statistics.stdev(values) if len(values) > 1 else None

    def _values(self, column: str) -> list[float]:
        return [getattr(member.evaluation, column) for member in self.members]

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval on the answers of all members together."""
        counts = [member.evaluation.episodes for member in self.members]
        right = [round(m.evaluation.accuracy * n) for m, n in zip(self.members, counts, strict=True)]
        return wilson_interval(sum(right), sum(counts))

    @property
    def tau_error(self) -> float:
        """Standard error of the mean τ over episodes, without the variance between seeds."""
        return math.hypot(*self._values("tau_error")) / len(self.members)

    @property
    def target(self) -> float:
        """1-δ."""
        return 1 - self.members[0].evaluation.delta

    @property
    def curves(self) -> list[StopCurve]:
        """The curves of all members; empty if one is missing."""
        curves = [member.curve for member in self.members if member.curve is not None]
        return curves if len(curves) == len(self.members) else []

    @property
    def seconds(self) -> float | None:
        """Wall time of training; None if unknown for a member."""
        return _mean_if_known(member.seconds for member in self.members)

    @property
    def environment_steps(self) -> float | None:
        """Environment steps in training per member; None if unknown for a member."""
        return _mean_if_known(member.environment_steps for member in self.members)

    @property
    def fails(self) -> bool:
        """Whether the interval lies below the target, or reaches down to the accuracy without data."""
        low, high = self.interval
        return high < self.target or low <= self.mean("no_data_accuracy")

    @property
    def verdicts(self) -> list[str]:
        """Problems of the method, in words; empty if it reaches its target."""
        words = []
        low, high = self.interval
        accuracy, reached = self.mean("accuracy"), sum(a >= self.target for a in self._values("accuracy"))
        if low <= self.mean("no_data_accuracy"):
            words.append("DOES NOT BEAT NO DATA")
        if high < self.target:
            words.append(f"MISSES {self.target:g}")
        elif accuracy < self.target:
            words.append(f"below {self.target:g}, within its interval")
        if 0 < reached < len(self.members):
            words.append(f"{reached} of {len(self.members)} seeds reach {self.target:g}")
        return words

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        columns = ("accuracy", "tau", "rounds", "readings", "forced", "ece", "no_data_accuracy")
        return {
            "name": self.name,
            "source": self.source,
            "mean": _known({name: self.mean(name) for name in columns}),
            "spread": _known({name: self.spread(name) for name in columns}),
            "interval": list(self.interval),
            **_known({"tau_error": self.tau_error}),
            "seconds": self.seconds,
            "environment_steps": self.environment_steps,
            "verdicts": self.verdicts,
            "remark": self.remark,
            "teams": [member.to_dict() for member in self.members],
        }


def _known(values: dict[str, Any]) -> dict[str, Any]:
    """Replace NaN by None, as JSON has no NaN."""
    return {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in values.items()}


def _mean_if_known(values: Iterable[float | None]) -> float | None:
    numbers = list(values)
    return None if None in numbers else statistics.fmean(v for v in numbers if v is not None)


Curves = dict[str, Sequence[CurvePoint]]


@dataclass(frozen=True)
class Comparison:
    """Methods and baselines on one problem with one δ."""

    problem: str  # in words
    delta: float
    episodes: int
    seed: int
    methods: tuple[Method, ...]
    curves: Curves
    curve_episodes: int
    baselines: Mapping[str, StopCurve] = field(default_factory=dict)  # the same curves with their sampling errors

    @property
    def no_data_accuracy(self) -> float | None:
        """The accuracy of the best constant answer, from the first method that has it."""
        values = (method.mean("no_data_accuracy") for method in self.methods)
        return next((value for value in values if not math.isnan(value)), None)

    @property
    def at_target(self) -> dict[str, Compared]:
        """Methods and baselines that have curves, at accuracy 1-δ, by name; gaps are to the first of them."""
        named = {method.name: method.curves for method in self.methods if method.curves}
        rules = {baseline_key(name): [curve] for name, curve in self.baselines.items()}
        return {row.name: row for row in at_equal_accuracy(named | rules)}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "problem": self.problem,
            "delta": self.delta,
            "episodes": self.episodes,
            "seed": self.seed,
            "methods": [method.to_dict() for method in self.methods],
            "pairs": [pair._asdict() for pair in pairs(self.methods)],
            "equal_accuracy": [row.to_dict() for row in self.at_target.values()],
            "baseline_episodes": self.curve_episodes,
            "baselines": {
                name: {
                    "tau_at_target": tau_at(points, 1 - self.delta),
                    "curve": [point._asdict() for point in points],
                }
                for name, points in self.curves.items()
            },
        }


def baseline_key(name: str) -> str:
    """A name for a baseline that no method has."""
    return f"{name} (baseline)"


class Pair(NamedTuple):
    """The paired difference between two methods in the same worlds, with a 95 % interval."""

    method: str
    other: str
    column: str
    difference: float
    low: float
    high: float

    def __str__(self) -> str:
        name = {"tau": "τ", "accuracy": "accuracy"}[self.column]
        return f"{name} {self.difference:+.3f} [{self.low:+.3f}, {self.high:+.3f}] against {self.other}, paired"


def pairs(methods: tuple[Method, ...]) -> list[Pair]:
    """Paired differences of each method with listed episodes to the first method in the same worlds."""
    listed = [(m, m.members[0].outcomes) for m in methods if len(m.members) == 1 and m.members[0].outcomes]
    differences: list[Pair] = []
    for index, (method, outcomes) in enumerate(listed):
        matching = [(m, o) for m, o in listed[:index] if o.worlds == outcomes.worlds and o.worlds]
        for column, key in (("tau", "stop_times"), ("accuracy", "correct")):
            values = getattr(outcomes, key)
            theirs = [(m.name, getattr(o, key)) for m, o in matching if getattr(o, key) is not None]
            if values is None or not theirs or len(theirs[0][1]) != len(values):
                continue
            more = values - theirs[0][1]
            differences.append(Pair(method.name, theirs[0][0], column, float(more.mean()), *mean_interval(more)))
    return differences


Tick = Callable[[int], None]
