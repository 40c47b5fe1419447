"""What a baseline is: a line on what it does, the parameter it takes, and how a team is built with it."""

import json
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Literal

from icmape.baselines.tuning import (
    TUNING_SEED,
    TUNING_WORLDS,
    Point,
    every_length,
    levels,
    tune,
    tuning_worlds,
    watch,
    with_level,
)
from icmape.errors import UserError
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Turns, Uniform
from icmape.play.stop import FixedLength, Threshold
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.spec import describe

BUDGET_WORLDS = 500  # on which lengths are compared, where a posterior is costly


class Task:
    """A problem and δ. Two that are described alike are the same, so that what was found for one is found once."""

    def __init__(self, problem: Problem, delta: float):
        self.problem, self.delta = problem, delta
        self.text = json.dumps([describe(problem), delta])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@dataclass(frozen=True)
class Rule:
    """A baseline with its parameter."""

    parameter: ClassVar[str]
    summary: str
    rival: bool = False  # whether a diagnosis plays it, to tell what a team's sampling loses
    exact: bool = True  # whether it needs an exact posterior
    trained: bool = False  # whether it is learned anew wherever it is used, which takes a minute or more
    own_beliefs: bool = False  # and one of one agent's data alone

    @abstractmethod
    def check(self, name: str, problem: Problem, value: Any) -> None:
        """Refuse a value of its parameter that cannot be."""

    @abstractmethod
    def choose(self, task: Task) -> tuple[Any, str] | None:
        """The value that just reaches 1-δ, and how it was found; none if there is none."""

    @abstractmethod
    def team(self, task: Task, value: Any) -> Team:
        """The baseline with this value."""

    @abstractmethod
    def curve(self, task: Task, episodes: int, seed: int) -> list[Point]:
        """Accuracy against τ as the parameter varies."""


@dataclass(frozen=True, kw_only=True)
class LevelRule(Rule):
    """It stops when something reaches a level. `build` makes it with any level."""

    parameter: ClassVar[str] = "level"
    build: Callable[[Any, float], Team]
    default: Literal["tuned", "1-δ"] = "tuned"
    most_worlds: int = TUNING_WORLDS  # to tune it on: fewer where deciding takes long

    def check(self, name: str, problem: Problem, value: float) -> None:
        """A probability."""
        if not 0 < value < 1:
            raise UserError(f"a level is a probability between 0 and 1; given level {value}")

    def choose(self, task: Task) -> tuple[float, str] | None:
        """1-δ, or the smallest that reaches it on tuning worlds."""
        if self.default == "1-δ":
            return 1 - task.delta, "1-δ"
        found, worlds = tuned(self, task), self.worlds(task.problem)
        said = f"the smallest that reaches 1-δ on {worlds:,} worlds (seed {TUNING_SEED})"
        return None if found is None else (found, said)

    def worlds(self, problem: Problem) -> int:
        """How many its level is tuned on."""
        return min(self.most_worlds, tuning_worlds(problem))

    def team(self, task: Task, value: float) -> Team:
        """With this level."""
        return with_level(built(self, task), value)

    def curve(self, task: Task, episodes: int, seed: int) -> list[Point]:
        """Every level from one play."""
        team = built(self, task)
        watched = watch(team, levels(team)[-1], episodes, seed)
        return [watched.at(level) for level in levels(team)]


@dataclass(frozen=True, kw_only=True)
class LengthRule(Rule):
    """It stops after a number of rounds, and how often it is then right can be computed."""

    parameter: ClassVar[str] = "rounds"
    build: Callable[[Any, float, int], Team]
    accuracy: Callable[[Any, int], float]

    def check(self, name: str, problem: Problem, value: int) -> None:
        """Within the horizon."""
        check_rounds(name, problem, value)

    def choose(self, task: Task) -> tuple[int, str] | None:
        """The shortest."""
        lengths = range(1, task.problem.horizon)
        found = next((n for n in lengths if self.accuracy(task.problem, n) >= 1 - task.delta), None)
        return None if found is None else (found, "the shortest that reaches 1-δ")

    def team(self, task: Task, value: int) -> Team:
        """Of this length."""
        return self.build(task.problem, task.delta, int(value))

    def curve(self, task: Task, episodes: int, seed: int) -> list[Point]:
        """Computed, not sampled."""
        return [Point(n, n + 1.0, self.accuracy(task.problem, n)) for n in range(1, task.problem.horizon)]


@dataclass(frozen=True, kw_only=True)
class BudgetRule(Rule):
    """It stops after a number of rounds, and how often it is then right is measured."""

    parameter: ClassVar[str] = "rounds"
    build: Callable[[Any, float], Team]  # stops at the end of the horizon
    worlds: Callable[[Any], int] = lambda problem: BUDGET_WORLDS  # on which lengths are compared

    def check(self, name: str, problem: Problem, value: int) -> None:
        """Within the horizon."""
        check_rounds(name, problem, value)

    def choose(self, task: Task) -> tuple[int, str] | None:
        """The fewest rounds that are enough on tuning worlds."""
        worlds = self.worlds(task.problem)
        points = self._points(task, worlds, TUNING_SEED, smooth=task.problem.posterior == "exact")
        found = next((int(point.parameter) for point in points if point.accuracy >= 1 - task.delta), None)
        said = f"the fewest that reach 1-δ on {worlds:,} worlds (seed {TUNING_SEED})"
        return None if found is None else (found, said)

    def team(self, task: Task, value: int) -> Team:
        """Of this length."""
        return replace(self.build(task.problem, task.delta), stop=FixedLength(int(value)))

    def curve(self, task: Task, episodes: int, seed: int) -> list[Point]:
        """Every length from one play."""
        return self._points(task, episodes, seed, smooth=False)

    def _points(self, task: Task, episodes: int, seed: int, smooth: bool) -> list[Point]:
        return every_length(self.build(task.problem, task.delta), episodes, seed, smooth)


def check_rounds(name: str, problem: Problem, value: int) -> None:
    """Refuse a number of rounds that does not fit the horizon."""
    if not 1 <= value < problem.horizon:
        raise UserError(
            f"{name} takes 1 to {problem.horizon - 1} rounds of data, as a horizon of {problem.horizon} includes "
            f"the stop; given rounds {value}"
        )


def random_team(problem: Problem, delta: float) -> Team:
    """Chance acts, and the exact posterior stops: for any problem that has one."""
    return Team(problem, Uniform(problem.agents, problem.actions + 1), Threshold(1 - delta), ExactInference(), delta)


def turns_team(problem: Problem, delta: float) -> Team:
    """Everyone takes turns and nobody looks; it stops at the end of the horizon."""
    return Team(problem, Turns(problem), FixedLength(problem.horizon - 1), ExactInference(), delta)


@cache
def built(rule: LevelRule, task: Task) -> Team:
    """The baseline with any level."""
    return rule.build(task.problem, task.delta)


@cache
def tuned(rule: LevelRule, task: Task) -> float | None:
    """Its smallest level that is enough."""
    return tune(built(rule, task), rule.worlds(task.problem))
