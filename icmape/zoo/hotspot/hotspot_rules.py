"""Baselines of hotspot monitoring."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from icmape.baselines.rules import BudgetRule, LevelRule, Rule
from icmape.play.open_loop import Schedule, Uniform
from icmape.play.stop import FixedLength, LearnedStop, Threshold
from icmape.play.team import Team
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.hotspot.mixture import MixtureInference, mixture_of
from icmape.zoo.hotspot.monitors import CentralMonitor, Monitors, reading_list
from icmape.zoo.hotspot.prior_map import POLICIES


def _watched(policy: Callable[[Hotspot], Any]) -> Callable[[Hotspot, float], Team]:
    """A non-adaptive policy with a stop on all agents' data."""

    def build(problem: Hotspot, delta: float) -> Team:
        return Team(problem, policy(problem), Threshold(1 - delta), MixtureInference(mixture_of(problem)), delta)

    return build


def _clocked(policy: Callable[[Hotspot], Any]) -> Callable[[Hotspot, float], Team]:
    """A non-adaptive policy with a stop after a number of rounds, which is set later."""

    def build(problem: Hotspot, delta: float) -> Team:
        inference = MixtureInference(mixture_of(problem))
        return Team(problem, policy(problem), FixedLength(problem.horizon - 1), inference, delta)

    return build


def _list(problem: Hotspot) -> Schedule:
    table = reading_list(problem, mixture_of(problem), problem.horizon - 1)
    return Schedule(table.astype(jnp.int32), problem.actions + 1)


def _monitors(adapts: bool) -> Callable[[Hotspot, float], Team]:
    def build(problem: Hotspot, delta: float) -> Team:
        model = mixture_of(problem)
        cells = reading_list(problem, model, problem.horizon - 1)
        policy = Monitors(problem, model, cells, jnp.float32(0), adapts)
        return Team(problem, policy, LearnedStop(), MixtureInference(model), delta)

    return build


def _central(problem: Hotspot, delta: float) -> Team:
    model = mixture_of(problem)
    return Team(problem, CentralMonitor(problem, model, jnp.float32(0)), LearnedStop(), MixtureInference(model), delta)


RULES: dict[str, Rule] = {
    "random": LevelRule(
        "uniform cells; stop when the mixture-of-years posterior is 1-δ sure",
        build=_watched(lambda problem: Uniform(problem.agents, problem.actions + 1)),
        default="1-δ",
    ),
    **{
        name: BudgetRule(f"{policy.summary}; a fixed number of rounds", build=_clocked(policy.make))
        for name, policy in POLICIES.items()
    },
    "reading-list": LevelRule(
        "a non-adaptive list of the most informative cells; stop on the posterior of all agents' data",
        build=_watched(_list),
        beside="a fixed schedule that everyone's data stop",
    ),
    "list-local-stop": LevelRule(
        "the same list; each agent stops on the posterior of its own data",
        rival=True,
        build=_monitors(adapts=False),
        beside="a decentralized rule",
    ),
    "local-adaptive": LevelRule(
        "each agent reads the most informative cell by its own posterior, and stops on it",
        rival=True,
        build=_monitors(adapts=True),
    ),
    "central-adaptive": LevelRule(
        "centralized: the most informative cells by the posterior of all data; stop on it", rival=True, build=_central
    ),
}
