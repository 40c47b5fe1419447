"""References by name: teams that do not learn, each a point or a curve to compare a trained team with."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import jax.numpy as jnp

from icmape.errors import UserError, nearest
from icmape.problems import Bandit, Problem, arguments
from icmape.references.central import CentralGreedy
from icmape.references.open_loop import Schedule, Uniform, schedule_from_loads
from icmape.references.schedules import best_plan, whole_schedule
from icmape.references.tuning import TUNING_SEED, TUNING_WORLDS, Point, fastest, levels, tune, watch, with_level
from icmape.references.watchful import AdaptivePulls, FixedPulls, TeamSchedule
from icmape.teams import ExactInference, FixedLength, LearnedStop, Team, Threshold

EIGHTHS = (4, 5, 6, 7, 8)  # of the shortest schedule that is good enough: what one that is left early starts with


@dataclass(frozen=True)
class Rule:
    """What a reference does, and how it is built for a problem and δ (with any level) or of a number of rounds."""

    summary: str
    parameter: Literal["rounds", "level"]
    build: Callable[[Bandit, float], Team] | None = None
    default: Literal["tuned", "1-δ"] = "tuned"


def _random(problem: Bandit, delta: float) -> Team:
    policy = Uniform(problem.agents, problem.actions + 1)
    return Team(problem, policy, Threshold(1 - delta), ExactInference(), delta)


def _central_greedy(problem: Bandit, delta: float) -> Team:
    return Team(problem, CentralGreedy(problem), Threshold(1 - delta), ExactInference(), delta)


def _left_early(policy: Callable[..., Any]) -> Callable[[Bandit, float], Team]:
    """A schedule with a stop: how much of it is planned as a whole, before it goes on greedily, is found by trial."""

    def build(problem: Bandit, delta: float) -> Team:
        def make(rounds: int) -> Team:
            scheduled = policy(problem, whole_schedule(problem, rounds), jnp.float32(0))
            return Team(problem, scheduled, LearnedStop(), ExactInference(), delta)

        enough = _shortest(problem, delta) or problem.horizon - 1
        return fastest(make, sorted({max(1, enough * eighths // 8) for eighths in EIGHTHS}))

    return build


RULES: dict[str, Rule] = {
    "random": Rule("uniform arms; stop when the exact posterior is 1-δ sure", "level", _random, "1-δ"),
    "open-loop": Rule("the best schedule of a fixed length; nobody looks at anything", "rounds"),
    "open-loop-local-stop": Rule(
        "a schedule, and each player may stop on its own readings", "level", _left_early(FixedPulls)
    ),
    "open-loop-global-stop": Rule("a schedule, and a stop on everyone's readings", "level", _left_early(TeamSchedule)),
    "local-adaptive": Rule(
        "a schedule; whoever was paid goes elsewhere; each player may stop on its own readings",
        "level",
        _left_early(AdaptivePulls),
    ),
    "central-greedy": Rule(
        "everyone's data in one head: least expected entropy a round ahead, stop on the exact posterior",
        "level",
        _central_greedy,
    ),
}

REFERENCES: dict[str, str] = {name: rule.summary for name, rule in RULES.items()}
"""Every reference with a line on what it does."""


def reference_team(
    name: str, problem: Problem, *, delta: float = 0.1, rounds: int | None = None, level: float | None = None
) -> Team:
    """A reference, ready to be evaluated. Its parameter is chosen for accuracy 1-δ unless given."""
    rule, bandit = _rule(name), _bandit(name, problem)
    _check(name, rule, bandit, delta, rounds, level)
    parameter, chosen = (rounds if rule.build is None else level), "given"
    if parameter is None:
        parameter, chosen = _choose(name, bandit, delta)
    if rule.build is None:
        team = _open_loop(bandit, delta, int(parameter))
    else:
        team = with_level(_built(name, _frozen(bandit), delta), parameter)
    card = {"reference": name, rule.parameter: parameter, "chosen": chosen, "posterior": problem.posterior}
    return replace(team, card=json.dumps(card, ensure_ascii=False))


def reference_curve(
    name: str, problem: Problem, *, delta: float = 0.1, episodes: int = 10_000, seed: int = 0
) -> list[Point]:
    """Accuracy against τ as the reference's parameter varies, on the worlds that an evaluation with this seed plays.

    What is planned ahead is planned for 1-δ. The accuracies of `open-loop` are computed, not sampled.
    """
    rule, bandit = _rule(name), _bandit(name, problem)
    if episodes < 1:
        raise UserError(f"a curve needs at least one episode; given {episodes}")
    if rule.build is None:
        return [Point(n, n + 1.0, best_plan(bandit, n).accuracy) for n in range(1, bandit.horizon)]
    team = _built(name, _frozen(bandit), delta)
    watched = watch(team, levels(team)[-1], episodes, seed)
    return [watched.at(level) for level in levels(team)]


def _open_loop(problem: Bandit, delta: float, rounds: int) -> Team:
    table = schedule_from_loads([tuple(row) for row in best_plan(problem, rounds).loads.tolist()])
    return Team(problem, Schedule(table, problem.actions + 1), FixedLength(rounds), ExactInference(), delta)


def _rule(name: str) -> Rule:
    if name not in RULES:
        raise UserError(f"unknown reference {name!r}: {nearest(name, RULES)}")
    return RULES[name]


def _bandit(name: str, problem: Problem) -> Bandit:
    if not isinstance(problem, Bandit):
        raise UserError(
            f"the reference {name} is for the capacity bandit, whose posterior is known; given was a "
            f"{type(problem).__name__}: choose a bandit preset or problem"
        )
    return problem


def _check(name: str, rule: Rule, problem: Bandit, delta: float, rounds: int | None, level: float | None) -> None:
    other, value = ("level", level) if rule.parameter == "rounds" else ("rounds", rounds)
    if value is not None:
        raise UserError(
            f"the reference {name} has no {other} (given {value}); it takes {rule.parameter}, or chooses one itself"
        )
    if not 0 < delta < 1:
        raise UserError(f"delta must lie between 0 and 1; given {delta}")
    if rounds is not None and not 1 <= rounds < problem.horizon:
        raise UserError(
            f"{name} takes 1 to {problem.horizon - 1} rounds of data, as a horizon of {problem.horizon} includes the "
            f"stop; given rounds {rounds}"
        )
    if level is not None and not 0 < level < 1:
        raise UserError(f"a level is a probability between 0 and 1; given level {level}")


def _choose(name: str, problem: Bandit, delta: float) -> tuple[float | int, str]:
    """The parameter that just reaches 1-δ, and how it was found."""
    rule = RULES[name]
    if rule.default == "1-δ":
        return 1 - delta, "1-δ"
    found = _shortest(problem, delta) if rule.build is None else _tuned(name, _frozen(problem), delta)
    if found is None:
        raise UserError(
            f"{name} does not reach accuracy {1 - delta:g} within the {problem.horizon} rounds of this problem: "
            f"give its {rule.parameter} yourself, a larger delta or a longer horizon"
        )
    if rule.build is None:
        return found, "the shortest that reaches 1-δ"
    return found, f"the smallest that reaches 1-δ on {TUNING_WORLDS:,} worlds (seed {TUNING_SEED})"


def _shortest(problem: Bandit, delta: float) -> int | None:
    return next((n for n in range(1, problem.horizon) if best_plan(problem, n).accuracy >= 1 - delta), None)


def _frozen(problem: Bandit) -> str:
    """A problem as text, so that what was found for it is found once."""
    return json.dumps(arguments(problem))


@cache
def _built(name: str, problem: str, delta: float) -> Team:
    build = RULES[name].build
    assert build is not None
    return build(Bandit(**json.loads(problem)), delta)


@cache
def _tuned(name: str, problem: str, delta: float) -> float | None:
    return tune(_built(name, problem, delta))
