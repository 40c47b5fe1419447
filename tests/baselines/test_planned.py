"""The plan as a baseline: a clock on a schedule, for problems with an exact posterior and without."""

import json

import jax
import numpy as np
import pytest

from icmape.baselines import planned
from icmape.baselines.registry import baseline_curve, baseline_team, baselines_for
from icmape.play.inference import ExactInference, NetworkInference
from icmape.play.rollout import play_greedy
from icmape.play.stop import FixedLength
from icmape.problem import Problem
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.bandit.schedules import best_plan
from tests.support import once


@pytest.fixture(autouse=True)
def small(monkeypatch):
    settings = {
        "plan.iterations": 60,
        "plan.num_envs": 64,
        "plan.init_rounds": 4,
        "network.hidden_size": 8,
        "posterior": "auto",
    }
    monkeypatch.setattr(planned, "SETTINGS", settings)
    planned._best_plan.cache_clear()
    yield
    planned._best_plan.cache_clear()


def test_it_is_as_good_as_the_best_schedule_that_a_search_finds():
    """Two arms, two players: both have to be tried together on each arm, again and again."""
    problem = Bandit(2, 2, 8)
    curve = baseline_curve("plan", problem, delta=0.2, episodes=4000)
    for rounds in (2, 4):
        assert curve[rounds - 1].accuracy == pytest.approx(best_plan(problem, rounds).accuracy, abs=0.025)
    team = baseline_team("plan", problem, delta=0.2)
    assert isinstance(team.inference, ExactInference)
    assert team.stop == FixedLength(json.loads(team.card)["rounds"])
    episodes = once(lambda: play_greedy(problem, team.behaviour(), jax.random.split(jax.random.key(0), 20)))
    assert len(set(np.asarray(episodes.stop).tolist())) == 1, "whatever is seen"


class Unknown(Bandit):
    """A bandit that keeps its posterior to itself."""

    @property
    def posterior(self) -> str:
        return "none"


def test_without_an_exact_posterior_the_network_answers():
    problem: Problem = Unknown(2, 2, 8)
    assert list(baselines_for(problem)) == ["plan", *list(baselines_for(Bandit(2, 2, 8)))[3:]]
    team = baseline_team("plan", problem, rounds=4)
    assert isinstance(team.inference, NetworkInference)
    assert team.evaluate(1000).accuracy > 0.5
