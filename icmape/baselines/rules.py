"""Baselines as rules: a summary, a parameter, and how to build a team with it."""

import json
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Literal

from icmape.baselines.tuning import (
    TUNING_SEED,
    TUNING_WORLDS,
    Point,
    Watched,
    every_length,
    every_level,
    levels,
    tune,
    tuning_worlds,
    watch_levels,
    watch_team,
    with_level,
)
from icmape.errors import UserError
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Turns, Uniform
from icmape.play.stop import FixedLength, Threshold
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.spec import describe

BUDGET_WORLDS = 500  # on which lengths are compared if the posterior is costly


class Task:
    """A problem and δ, equal if their descriptions are: a key of caches."""

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
    rival: bool = False  # whether a diagnosis compares with it
    exact: bool = True  # whether it needs an exact posterior
    trained: bool = False  # whether it is trained at every use, which takes a minute or more
    own_beliefs: bool = False  # whether it needs an exact posterior of the data of one agent
    beside: str = ""  # what it is, such as "a fixed schedule", if reports set it beside a team without being asked

    @abstractmethod
    def check(self, name: str, problem: Problem, value: Any) -> None:
        """Raise `UserError` for an invalid value of the parameter."""

    @abstractmethod
    def choose(self, task: Task) -> tuple[Any, str] | None:
        """The smallest value that reaches 1-δ, and how it was chosen; None if there is none."""

    @abstractmethod
    def team(self, task: Task, value: Any) -> Team:
        """The baseline with this value."""

    @abstractmethod
    def curve(self, task: Task, episodes: int, seed: int) -> list[Point]:
        """Accuracy against τ as the parameter varies."""

    @abstractmethod
    def watch(self, task: Task, episodes: int, seed: int) -> tuple[Watched, float] | None:
        """Episodes that show every value of the parameter up to the given one; None if the curve is computed."""


@dataclass(frozen=True, kw_only=True)
class LevelRule(Rule):
    """It stops when a statistic reaches a level. `build` gives the team with an arbitrary level."""

    parameter: ClassVar[str] = "level"
    build: Callable[[Any, float], Team]
    default: Literal["tuned", "1-δ"] = "tuned"
    most_worlds: int = TUNING_WORLDS  # for tuning; fewer if decisions are slow

    def check(self, name: str, problem: Problem, value: float) -> None:
        """The level must be a probability."""
        if not 0 < value < 1:
            raise UserError(f"a level is a probability between 0 and 1; given level {value}")

    def choose(self, task: Task) -> tuple[float, str] | None:
        """The level 1-δ, or the smallest level that reaches accuracy 1-δ on tuning worlds."""
        if self.default == "1-δ":
            return 1 - task.delta, "1-δ"
        level, worlds = tuned(self, task), self.worlds(task.problem)
        reason = f"the smallest that reaches 1-δ on {worlds:,} worlds (seed {TUNING_SEED})"
        return None if level is None else (level, reason)

    def worlds(self, problem: Problem) -> int:
        """Number of worlds for tuning the level."""
        return min(self.most_worlds, tuning_worlds(problem))

    def team(self, task: Task, value: float) -> Team:
        """The team with this level."""
        return with_level(built(self, task), value)

    def curve(self, task: Task, episodes: int, seed: int) -> list[Point]:
        """Every level, from one set of episodes."""
        return every_level(built(self, task), episodes, seed)

    def watch(self, task: Task, episodes: int, seed: int) -> tuple[Watched, float]:
        """Episodes with the highest level."""
        team = built(self, task)
        return watch_levels(team, episodes, seed), levels(team)[-1]


@dataclass(frozen=True, kw_only=True)
class LengthRule(Rule):
    """It stops after a number of rounds; its accuracy is computed."""

    parameter: ClassVar[str] = "rounds"
    build: Callable[[Any, float, int], Team]
    accuracy: Callable[[Any, int], float]

    def check(self, name: str, problem: Problem, value: int) -> None:
        """The rounds must fit the horizon."""
        check_rounds(name, problem, value)

    def choose(self, task: Task) -> tuple[int, str] | None:
        """The shortest length that reaches 1-δ."""
        lengths = range(1, task.problem.horizon)
        rounds = next((n for n in lengths if self.accuracy(task.problem, n) >= 1 - task.delta), None)
        return None if rounds is None else (rounds, "the shortest that reaches 1-δ")

    def team(self, task: Task, value: int) -> Team:
        """The team of this length."""
        return self.build(task.problem, task.delta, int(value))

    def curve(self, task: Task, episodes: int, seed: int) -> list[Point]:
        """Every length, computed and not sampled."""
        return [Point(n, n + 1.0, self.accuracy(task.problem, n)) for n in range(1, task.problem.horizon)]

    def watch(self, task: Task, episodes: int, seed: int) -> None:
        """Nothing is played."""


@dataclass(frozen=True, kw_only=True)
class BudgetRule(Rule):
    """It stops after a number of rounds; its accuracy is measured."""

    parameter: ClassVar[str] = "rounds"
    build: Callable[[Any, float], Team]  # stops at the end of the horizon
    worlds: Callable[[Any], int] = lambda problem: BUDGET_WORLDS  # on which lengths are compared

    def check(self, name: str, problem: Problem, value: int) -> None:
        """The rounds must fit the horizon."""
        check_rounds(name, problem, value)

    def choose(self, task: Task) -> tuple[int, str] | None:
        """The fewest rounds that reach 1-δ on tuning worlds."""
        worlds = self.worlds(task.problem)
        points = self._points(task, worlds, TUNING_SEED, smooth=task.problem.posterior == "exact")
        rounds = next((int(point.parameter) for point in points if point.accuracy >= 1 - task.delta), None)
        reason = f"the fewest that reach 1-δ on {worlds:,} worlds (seed {TUNING_SEED})"
        return None if rounds is None else (rounds, reason)

    def team(self, task: Task, value: int) -> Team:
        """The team of this length."""
        return replace(self.build(task.problem, task.delta), stop=FixedLength(int(value)))

    def curve(self, task: Task, episodes: int, seed: int) -> list[Point]:
        """Every length, from one set of episodes."""
        return self._points(task, episodes, seed, smooth=False)

    def watch(self, task: Task, episodes: int, seed: int) -> tuple[Watched, float]:
        """Episodes to the end of the horizon."""
        return watch_team(self.build(task.problem, task.delta), episodes, seed), math.inf

    def _points(self, task: Task, episodes: int, seed: int, smooth: bool) -> list[Point]:
        return every_length(self.build(task.problem, task.delta), episodes, seed, smooth)


def check_rounds(name: str, problem: Problem, value: int) -> None:
    """Raise `UserError` if the number of rounds does not fit the horizon."""
    if not 1 <= value < problem.horizon:
        raise UserError(
            f"{name} takes 1 to {problem.horizon - 1} rounds of data, as a horizon of {problem.horizon} includes "
            f"the stop; given rounds {value}"
        )


def random_team(problem: Problem, delta: float) -> Team:
    """Uniform actions, and STOP by the exact posterior."""
    return Team(problem, Uniform(problem.agents, problem.actions + 1), Threshold(1 - delta), ExactInference(), delta)


def turns_team(problem: Problem, delta: float) -> Team:
    """Round robin, independent of observations, until the end of the horizon."""
    return Team(problem, Turns(problem), FixedLength(problem.horizon - 1), ExactInference(), delta)


@cache
def built(rule: LevelRule, task: Task) -> Team:
    """The team of a rule, with an arbitrary level."""
    return rule.build(task.problem, task.delta)


@cache
def tuned(rule: LevelRule, task: Task) -> float | None:
    """The smallest level that reaches 1-δ; None if there is none."""
    return tune(built(rule, task), rule.worlds(task.problem))
