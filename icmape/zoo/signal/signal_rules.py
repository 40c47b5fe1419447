"""Baselines of source localization."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from icmape.baselines.rules import LevelRule, Rule
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import LearnedStop, Threshold
from icmape.play.team import Team
from icmape.zoo.signal.seekers import local_greedy, local_sweep, signal_central
from icmape.zoo.signal.signal import Signal
from icmape.zoo.signal.thompson import POLICIES
from icmape.zoo.signal.tours import detectors_sweep, sweep


def _sweep(problem: Signal, delta: float) -> Team:
    policy = Schedule(jnp.asarray(sweep(problem).moves, jnp.int32), problem.actions + 1)
    return Team(problem, policy, Threshold(1 - delta), ExactInference(), delta)


def _thompson(name: str) -> Callable[[Signal, float], Team]:
    def build(problem: Signal, delta: float) -> Team:
        return Team(problem, POLICIES[name].make(problem), Threshold(1 - delta), ExactInference(), delta)

    return build


def _stops_itself(policy: Callable[[Signal], Any]) -> Callable[[Signal, float], Team]:
    def build(problem: Signal, delta: float) -> Team:
        return Team(problem, policy(problem), LearnedStop(), ExactInference(), delta)

    return build


RULES: dict[str, Rule] = {
    "sweep": LevelRule(
        "disjoint tours that nothing changes; stop on the exact posterior of everyone's data", build=_sweep
    ),
    "sweep-local-stop": LevelRule(
        "the same tours; a detector stops when it has detected, the field agent on its own posterior",
        rival=True,
        build=_stops_itself(lambda problem: local_sweep(problem, sweep(problem))),
    ),
    "local-greedy": LevelRule(
        "detectors on tours, the field agent goes where its own posterior says; each stops on its own data",
        rival=True,
        build=_stops_itself(lambda problem: local_greedy(problem, detectors_sweep(problem))),
    ),
    "central-greedy": LevelRule(
        "everyone's data in one head: all go where the source is likely; stop on the exact posterior",
        rival=True,
        build=_stops_itself(signal_central),
    ),
    "thompson": LevelRule(
        "each goes to a cell drawn from its own posterior and reads others' positions; stop at 1-δ",
        build=_thompson("thompson"),
        default="1-δ",
    ),
    "thompson-paper": LevelRule(
        "the same with the paper's literal evidence, which is not what the environment does",
        build=_thompson("thompson-paper"),
        default="1-δ",
    ),
}
