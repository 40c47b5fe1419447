"""Baselines by name: their parameters reach the target, their curves agree with evaluations, and errors say why."""

import itertools
import json

import pytest

from icmape.baselines import rules, tuning
from icmape.baselines.registry import COMMON, baseline_curve, baseline_team, baselines_for, rivals
from icmape.errors import UserError
from icmape.play.stop import FixedLength, Threshold
from icmape.problem.entry import entries
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.bandit.bandit_rules import RULES
from icmape.zoo.bandit.schedules import best_plan
from icmape.zoo.signal.signal import Signal
from tests.coins import Coins

SMALL = Bandit(2, 3, 12)


def test_the_shortest_schedule_that_is_good_enough():
    team = baseline_team("open-loop", Bandit(3, 5, 50))
    assert team.stop == FixedLength(12)
    assert json.loads(team.card)["rounds"] == 12


def test_random_stops_at_one_minus_delta():
    assert baseline_team("random", SMALL, delta=0.2).stop == Threshold(0.8)


def test_a_tuned_level_reaches_the_target_and_no_lower_one_does(monkeypatch, request):
    """2,000 worlds, and as many to tune: the confidence's mean is 0.003 off each time; 4 times both: 1e-4."""
    monkeypatch.setattr(tuning, "TUNING_WORLDS", 2000)
    rules.tuned.cache_clear()  # what was tuned on more worlds, and below on fewer, is nobody else's
    request.addfinalizer(rules.tuned.cache_clear)
    team = baseline_team("local-adaptive", SMALL)
    assert team.evaluate(2000).confidence > 0.9 - 0.017
    level = json.loads(team.card)["level"]
    watched = tuning.watch(team, level, 2000, -1, smooth=True)
    assert watched.at(level).accuracy >= 0.9 > watched.at(level - 0.005).accuracy


def test_a_curve_passes_through_what_evaluations_say():
    curve = baseline_curve("local-adaptive", SMALL, episodes=1000, seed=4)
    assert curve[-1].accuracy > 0.9 > curve[0].accuracy
    assert all(a.tau <= b.tau for a, b in itertools.pairwise(curve))
    point = curve[20]
    result = baseline_team("local-adaptive", SMALL, level=point.parameter).evaluate(1000, seed=4)
    assert (result.tau, result.accuracy) == pytest.approx((point.tau, point.accuracy))


def test_the_open_loops_curve_is_computed():
    curve = baseline_curve("open-loop", SMALL)
    assert [(p.parameter, p.tau) for p in curve] == [(n, n + 1) for n in range(1, 12)]
    assert curve[2].accuracy == best_plan(SMALL, 3).accuracy


def test_local_rules_can_act_alone_and_team_rules_cannot():
    assert baseline_team("local-adaptive", SMALL, level=0.97).agent(2).act() in (0, 1)
    with pytest.raises(UserError, match="everyone's data"):
        baseline_team("central-greedy", SMALL, level=0.9).agent(0)


def test_a_prior_that_couples_arms_is_named():
    coupled = Bandit(2, 3, 12, capacity_concentration=0.5)
    assert json.loads(baseline_team("open-loop", coupled, rounds=3).card)["posterior"] == "misspecified"


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("open-lop", {}, "did you mean open-loop"),
        ("open-loop", {"level": 0.5}, "has no level .* takes rounds"),
        ("open-loop", {"rounds": 12}, "1 to 11 rounds"),
        ("open-loop", {"rounds": 0}, "1 to 11 rounds"),
        ("random", {"rounds": 5}, "has no rounds .* takes level"),
        ("random", {"level": 1.5}, "between 0 and 1"),
        ("random", {"delta": 0.0}, "between 0 and 1"),
        ("open-loop", {"delta": 0.0001}, "does not reach accuracy 0.9999"),
    ],
)
def test_errors_say_what_to_do(name, given, says):
    with pytest.raises(UserError, match=says):
        baseline_team(name, SMALL, **given)


def test_other_problems_are_refused_by_name():
    own = {name: entry.part("baselines", {}) for name, entry in entries().items()}
    for kind, names in own.items():
        for name in set(names) - set(COMMON):
            mine = " or ".join(k for k, others in own.items() if name in others)
            with pytest.raises(UserError, match=rf"{name} is for {mine}; given was a Coins: those for it are random"):
                baseline_team(name, Coins())
            with pytest.raises(UserError, match=f"{name} is for .*{kind}"):
                baseline_curve(name, Coins())
    with pytest.raises(
        UserError, match=r"local-adaptive is for bandit or hotspot; given was a Signal: those for it are .*sweep"
    ):
        baseline_team("local-adaptive", Signal(grid=9, window=3, move=3, distance=4))


def test_what_has_an_exact_posterior_has_baselines():
    assert list(baselines_for(Coins(agents=2))) == ["random", "turns", "plan", "central-greedy"]
    assert list(baselines_for(Coins())) == ["random", "turns", "plan", "local-greedy", "central-greedy"]
    assert baseline_team("random", Coins()).evaluate(50).confidence > 0.85


def test_a_diagnosis_plays_the_rivals_of_its_problem():
    assert rivals(SMALL) == ["open-loop", "open-loop-local-stop", "local-adaptive", "central-greedy"]
    assert rivals(Coins(agents=2)) == ["central-greedy"]


def test_a_problems_own_baseline_goes_before_that_of_the_same_name_for_any():
    assert baselines_for(SMALL)["central-greedy"] is RULES["central-greedy"]
    assert list(baselines_for(SMALL))[:4] == ["random", "turns", "plan", "open-loop"]
