"""Baselines by name, as teams and as curves of accuracy against τ."""

import json
from dataclasses import replace
from typing import Any, NamedTuple

from icmape.baselines.greedy import central_greedy, local_greedy
from icmape.baselines.own import own_curve, own_team
from icmape.baselines.planned import plan_team
from icmape.baselines.rules import BudgetRule, LevelRule, Rule, Task, built, random_team, turns_team
from icmape.baselines.tuning import FEWER_WORLDS, Point, Watched, tuning_worlds
from icmape.errors import UserError, nearest
from icmape.imports import is_path
from icmape.play.policy import LocalPolicy
from icmape.play.stop import LearnedStop
from icmape.play.team import Team
from icmape.problem import Problem, check_worlds
from icmape.problem.entry import entries, entry_of

COMMON: dict[str, Rule] = {
    "random": LevelRule("uniform actions; stop at exact confidence 1-δ", build=random_team, default="1-δ"),
    "turns": BudgetRule(
        "round robin over the actions, independent of observations; a fixed number of rounds",
        build=turns_team,
        worlds=tuning_worlds,
        beside="a round robin",
    ),
    "plan": BudgetRule(
        "the best non-adaptive schedule by policy gradient; a fixed number of rounds",
        build=plan_team,
        worlds=tuning_worlds,
        exact=False,
        trained=True,
    ),
    "local-greedy": LevelRule(
        "each agent minimizes the expected entropy of the exact posterior of its own data, and stops on it",
        rival=True,
        own_beliefs=True,
        build=local_greedy,
        most_worlds=FEWER_WORLDS,
    ),
    "central-greedy": LevelRule(
        "data of all agents: least expected entropy one round ahead; stop on the exact posterior",
        rival=True,
        build=central_greedy,
        most_worlds=FEWER_WORLDS,
    ),
}
"""Baselines for any problem with the posterior that they need (`Rule.exact`, `Rule.own_beliefs`)."""


class Line(NamedTuple):
    """A line of the catalogue."""

    name: str
    problem: str
    summary: str


def catalogue() -> list[Line]:
    """All baselines with their problem ("any" for the common ones) and a summary."""
    specific = ((entry.name, entry.part("baselines", {})) for entry in entries().values())
    return [
        *(Line(name, "any", rule.summary) for name, rule in COMMON.items()),
        *(Line(name, problem, rule.summary) for problem, rules in specific for name, rule in rules.items()),
    ]


def baseline_names() -> list[str]:
    """The names of all baselines of all problems."""
    return list(dict.fromkeys(line.name for line in catalogue()))


def trained_baselines() -> set[str]:
    """Names of the baselines that are trained at every use."""
    all_rules = (COMMON, *(entry.part("baselines", {}) for entry in entries().values()))
    return {name for rules in all_rules for name, rule in rules.items() if rule.trained}


def baselines_for(problem: Problem) -> dict[str, Rule]:
    """The baselines of a problem: the common ones that fit, and its own ones, which take precedence."""
    entry = entry_of(type(problem))
    specific: dict[str, Rule] = {} if entry is None else entry.part("baselines", {})
    return {name: rule for name, rule in COMMON.items() if name not in specific and _fits(rule, problem)} | specific


def _fits(rule: Rule, problem: Problem) -> bool:
    if problem.posterior == "none":
        return not rule.exact
    return problem.has_own_beliefs or not rule.own_beliefs


def rivals(problem: Problem) -> list[str]:
    """The baselines that a diagnosis compares with, to measure the loss by a team's sampling."""
    return [name for name, rule in baselines_for(problem).items() if rule.rival]


def beside_teams(problem: Problem) -> dict[str, str]:
    """The baselines that reports set beside a team without being asked, and what each is.

    Those that the problem declares, else those for any problem.
    """
    fitting = {name: rule.beside for name, rule in baselines_for(problem).items() if rule.beside}
    declared = {name: words for name, words in fitting.items() if name not in COMMON or _own(name, problem)}
    return declared or fitting


def _own(name: str, problem: Problem) -> bool:
    """Whether the problem has its own baseline of a common name."""
    return baselines_for(problem)[name] is not COMMON[name]


def baseline_team(
    name: str, problem: Problem, *, delta: float = 0.1, rounds: int | None = None, level: float | None = None
) -> Team:
    """A baseline as a team. Its parameter is tuned to accuracy 1-δ unless given.

    `module:Class` is called with the problem and δ, and returns a team.
    """
    if not 0 < delta < 1:
        raise UserError(f"delta must lie between 0 and 1; given {delta}")
    check_worlds(problem)
    if is_path(name):
        if (rounds, level) != (None, None):
            raise UserError(f"the baseline {name} brings its own stop: leave out rounds and level")
        return own_team(name, problem, delta)
    rule = _rule(name, problem)
    value = _given(name, rule, {"rounds": rounds, "level": level})
    task = Task(problem, delta)
    if value is None:
        value, chosen = _choose(name, rule, task)
    else:
        rule.check(name, problem, value)
        chosen = "given"
    card = {"baseline": name, rule.parameter: value, "chosen": chosen, "posterior": problem.posterior}
    return replace(rule.team(task, value), card=json.dumps(card, ensure_ascii=False))


def teaching_team(name: str, problem: Problem, delta: float, stops: bool) -> Team:
    """A baseline as a teacher. Its level is tuned only if agents imitate its stops."""
    rule = _rule(name, problem)
    check_worlds(problem)
    team = built(rule, Task(problem, delta)) if isinstance(rule, LevelRule) else None
    if team is not None and not (stops and isinstance(team.stop, LearnedStop) and isinstance(team.policy, LocalPolicy)):
        return team
    return baseline_team(name, problem, delta=delta)


def baseline_curve(
    name: str, problem: Problem, *, delta: float = 0.1, episodes: int = 10_000, seed: int = 0
) -> list[Point]:
    """Accuracy against τ as the parameter of the baseline varies, on the worlds of an evaluation with this seed.

    Plans are optimized for 1-δ. The accuracies of the bandit's `open-loop` are computed, not sampled.
    """
    check_worlds(problem)
    if episodes < 1:
        raise UserError(f"a curve needs at least one episode; given {episodes}")
    if is_path(name):
        return own_curve(own_team(name, problem, delta), episodes, seed)
    return _rule(name, problem).curve(Task(problem, delta), episodes, seed)


def watch_baseline(
    name: str, problem: Problem, *, delta: float = 0.1, episodes: int = 10_000, seed: int = 0
) -> tuple[Watched, float] | None:
    """Episodes that show the baseline with every value of its parameter up to the given one.

    None if the curve of the baseline is computed (`baseline_curve`). The worlds are those of an evaluation.
    """
    check_worlds(problem)
    return _rule(name, problem).watch(Task(problem, delta), episodes, seed)


def check_fits(name: str, problem: Problem) -> None:
    """Raise `UserError` if a baseline does not fit the problem. Nothing is built."""
    _rule(name, problem)


def _rule(name: str, problem: Problem) -> Rule:
    fitting, problem_class = baselines_for(problem), type(problem).__name__
    if name in fitting:
        return fitting[name]
    if name not in baseline_names():
        raise UserError(f"unknown baseline {name!r}: {nearest(name, fitting or baseline_names())}")
    kinds = [_any(COMMON[name]) if line.problem == "any" else line.problem for line in catalogue() if line.name == name]
    instead = f"those for it are {', '.join(fitting)}" if fitting else "there are none for it"
    raise UserError(f"the baseline {name} is for {' or '.join(kinds)}; given was a {problem_class}: {instead}")


def _any(rule: Rule) -> str:
    if not rule.exact:
        return "any problem"
    return "any problem with an exact posterior" + " of one agent's data (update_own_belief)" * rule.own_beliefs


def _given(name: str, rule: Rule, values: dict[str, Any]) -> Any:
    """The value of the parameter of the rule; raises `UserError` if another parameter is given."""
    for other, value in values.items():
        if other != rule.parameter and value is not None:
            raise UserError(
                f"the baseline {name} has no {other} (given {value}); it takes {rule.parameter}, or chooses one itself"
            )
    return values[rule.parameter]


def _choose(name: str, rule: Rule, task: Task) -> tuple[float | int, str]:
    choice = rule.choose(task)
    if choice is None:
        raise UserError(
            f"{name} does not reach accuracy {1 - task.delta:g} within the {task.problem.horizon} rounds of this "
            f"problem: give its {rule.parameter} yourself, a larger delta or a longer horizon"
        )
    return choice
