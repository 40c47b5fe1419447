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
        "non-adaptive disjoint tours; stop on the exact posterior of all agents' data",
        build=_sweep,
        beside="a fixed schedule that everyone's data stop",
    ),
    "sweep-local-stop": LevelRule(
        "the same tours; a detector stops after a detection, the field agent on its own posterior",
        rival=True,
        build=_stops_itself(lambda problem: local_sweep(problem, sweep(problem))),
    ),
    "local-greedy": LevelRule(
        "detectors on tours, the field agent follows its own posterior; each stops on its own data",
        rival=True,
        build=_stops_itself(lambda problem: local_greedy(problem, detectors_sweep(problem))),
        beside="a decentralized rule",
    ),
    "central-greedy": LevelRule(
        "centralized: all go where the source is likely, from all agents' data; stop on the exact posterior",
        rival=True,
        build=_stops_itself(signal_central),
    ),
    "thompson": LevelRule(
        "each goes to a cell drawn from its own posterior, which uses others' positions; stop at 1-δ",
        build=_thompson("thompson"),
        default="1-δ",
    ),
    "thompson-paper": LevelRule(
        "the same with the paper's literal likelihood, which differs from the environment",
        build=_thompson("thompson-paper"),
        default="1-δ",
    ),
}
