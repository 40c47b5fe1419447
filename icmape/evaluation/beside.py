"""Baselines that stand beside teams in a report: which ones, and their curves in the worlds of the teams."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from icmape.baselines.registry import beside_teams, check_fits
from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.evaluation.baseline_curves import baseline_stop_curve
from icmape.evaluation.equal_accuracy import Compared, at_equal_accuracy
from icmape.evaluation.stop_curves import StopCurve, stop_curve, why_no_curve
from icmape.imports import is_path
from icmape.play.open_loop import Turns
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.problem import Centralized, Problem

FIRST_WORLDS = 200  # on which every baseline is played first, to see how long it takes
SECONDS = 60.0  # for a baseline that was not asked for
OWN_NETWORK = "a round robin with the same network"


@dataclass(frozen=True)
class Beside:
    """A baseline and its curve. `words` say what it is, such as "a fixed schedule"; empty where nothing says so."""

    name: str
    words: str
    curve: StopCurve

    @property
    def label(self) -> str:
        """Its name in figures and tables: what it is, and its name in commands."""
        kind = self.words.removeprefix("a ")
        return f"{kind} ({self.name})" if kind else f"{self.name} (baseline)"

    @property
    def sentence(self) -> str:
        """What it is, in a sentence."""
        return self.words or f"the baseline {self.name}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"name": self.name, "words": self.words, "curve": self.curve.to_dict()}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Beside:
        """The inverse of `to_dict`."""
        return Beside(values["name"], values["words"], StopCurve.from_dict(values["curve"]))


def problem_of_baselines(problem: Problem) -> Problem:
    """The problem that baselines play: that of a centralized team has an agent for each of its own."""
    return problem.problem if isinstance(problem, Centralized) else problem


def usual(team: Team) -> dict[str, tuple[str, str | Team]]:
    """The baselines that stand beside a team without being asked for: by name, what each is and how it is built.

    Where the problem has no exact posterior and no rules, that is a round robin with the network of the team.
    """
    problem = problem_of_baselines(team.problem)
    declared = beside_teams(problem)
    if declared or isinstance(team.problem, Centralized):
        return {name: (words, name) for name, words in declared.items()}
    rule = replace(team, policy=Turns(problem), stop=FixedLength(problem.horizon - 1))
    return {"turns": (OWN_NETWORK, rule)}


def named(team: Team, names: Sequence[str]) -> dict[str, tuple[str, str | Team]]:
    """Baselines that the user named, if they fit the problem of a team."""
    known = usual(team)
    for name in names:
        if name not in known and not is_path(name):
            check_fits(name, problem_of_baselines(team.problem))
    return {name: known.get(name, ("", name)) for name in names}


def measure(
    rules: Mapping[str, tuple[str, str | Team]],
    problem: Problem,
    *,
    delta: float,
    worlds: int,
    seed: int,
    in_time: bool,
    doing: Callable[[str], None] = lambda words: None,
) -> tuple[list[Beside], int]:
    """The curves of baselines, and the number of worlds of all of them.

    `in_time` takes fewer worlds where one of the baselines would take longer than `SECONDS`, and leaves out those that
    do not fit the problem.
    """
    use_compilation_cache()
    problem = problem_of_baselines(problem)

    def played(name: str, count: int, seed: int = seed) -> tuple[StopCurve, float]:
        doing(f"{name}, {count:,} worlds")
        began = time.monotonic()
        curve = baseline_stop_curve(rules[name][1], problem, delta=delta, episodes=count, seed=seed)
        curve = StopCurve.from_dict(curve.to_dict())  # rounded in the same way whether stored or not
        return replace(curve, own=None), time.monotonic() - began

    count, found = min(worlds, FIRST_WORLDS) if in_time else worlds, {}
    for name in rules:
        try:
            found[name] = played(name, count)
        except UserError:
            if not in_time:
                raise
    # once more where it was slow: the first time programs are compiled and levels or schedules are chosen
    again = {name: count < worlds and seconds > SECONDS * count / worlds for name, (_, seconds) in found.items()}
    slowest = max((min(s, played(n, count, seed + 1)[1]) if again[n] else s for n, (_, s) in found.items()), default=0)
    if (more := affordable(count, slowest, worlds)) > count:
        count, found = more, {name: played(name, more) for name in found}
    return [Beside(name, rules[name][0], curve) for name, (curve, _) in found.items()], count


def affordable(count: int, seconds: float, worlds: int) -> int:
    """How many worlds the time allows, from the seconds of the first ones; those again where it is less than twice."""
    more = min(worlds, math.floor(count * SECONDS / max(seconds, 1e-3) / 100) * 100)
    return more if more >= 2 * count or more == worlds else count


def curve_beside(team: Team, worlds: int, seed: int, target: float) -> StopCurve | None:
    """The curve of a team in the worlds of the baselines; None if it has none."""
    if why_no_curve(team):
        return None
    return StopCurve.from_dict(stop_curve(team, episodes=worlds, seed=seed, target=target).to_dict())


@dataclass(frozen=True)
class Standing:
    """Methods and baselines at the accuracy of the target, in the same worlds."""

    methods: Mapping[str, Sequence[StopCurve]]  # by label; of all teams
    baselines: Sequence[Beside]
    worlds: int
    target: float

    @property
    def curves(self) -> dict[str, Sequence[StopCurve]]:
        """The curves of all, by label."""
        return {**self.methods, **{rule.label: [rule.curve] for rule in self.baselines}}

    @property
    def compared(self) -> list[Compared]:
        """All of them at the target, with their gaps to the first."""
        return at_equal_accuracy(self.curves)
