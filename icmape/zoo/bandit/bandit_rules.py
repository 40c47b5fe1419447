"""Baselines of the capacity bandit."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from icmape.baselines.rules import LengthRule, LevelRule, Rule, Task
from icmape.baselines.tuning import fastest
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule, schedule_from_loads
from icmape.play.stop import FixedLength, LearnedStop, Threshold
from icmape.play.team import Team
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.bandit.central import CentralGreedy
from icmape.zoo.bandit.collisions import collision_tests
from icmape.zoo.bandit.schedules import best_plan, whole_schedule
from icmape.zoo.bandit.watchful import AdaptivePulls, FixedPulls, TeamSchedule

EIGHTHS = (4, 5, 6, 7, 8)  # of the shortest sufficient schedule: candidates for the planned part


def _open_loop(problem: Bandit, delta: float, rounds: int) -> Team:
    table = schedule_from_loads([tuple(row) for row in best_plan(problem, rounds).loads.tolist()])
    return Team(problem, Schedule(table, problem.actions + 1), FixedLength(rounds), ExactInference(), delta)


def _open_loop_accuracy(problem: Bandit, rounds: int) -> float:
    return best_plan(problem, rounds).accuracy


OPEN_LOOP = LengthRule(
    "the best schedule of a fixed length; non-adaptive",
    rival=True,
    build=_open_loop,
    accuracy=_open_loop_accuracy,
    beside="a fixed schedule",
)


def _central_greedy(problem: Bandit, delta: float) -> Team:
    return Team(problem, CentralGreedy(problem), Threshold(1 - delta), ExactInference(), delta)


def _left_early(policy: Callable[..., Any]) -> Callable[[Bandit, float], Team]:
    """A schedule with early stopping. The length of its jointly planned part is tuned; the rest is greedy."""

    def build(problem: Bandit, delta: float) -> Team:
        def make(rounds: int) -> Team:
            scheduled = policy(problem, whole_schedule(problem, rounds), jnp.float32(0))
            return Team(problem, scheduled, LearnedStop(), ExactInference(), delta)

        shortest = OPEN_LOOP.choose(Task(problem, delta))
        enough = shortest[0] if shortest else problem.horizon - 1
        return fastest(make, sorted({max(1, enough * eighths // 8) for eighths in EIGHTHS}))

    return build


def _collision_tests(problem: Bandit, delta: float) -> Team:
    scheduled = FixedPulls(problem, jnp.asarray(collision_tests(problem)), jnp.float32(0))
    return Team(problem, scheduled, LearnedStop(), ExactInference(), delta)


RULES: dict[str, Rule] = {
    "open-loop": OPEN_LOOP,
    "open-loop-local-stop": LevelRule(
        "a schedule; each player may stop on its own readings", rival=True, build=_left_early(FixedPulls)
    ),
    "open-loop-global-stop": LevelRule("a schedule; a stop on all players' readings", build=_left_early(TeamSchedule)),
    "local-adaptive": LevelRule(
        "a schedule; a player that was paid goes to another arm; each player may stop on its own readings",
        rival=True,
        build=_left_early(AdaptivePulls),
        beside="a decentralized rule",
    ),
    "collision-tests": LevelRule(
        "A-CAPELLA-style: every arm at every load in turn; each player may stop on its own readings (the stop is ours)",
        build=_collision_tests,
    ),
    "central-greedy": LevelRule(
        "centralized: least expected entropy one round ahead, from all players' data; stop on the exact posterior",
        rival=True,
        build=_central_greedy,
    ),
}
