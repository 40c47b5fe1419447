"""Baselines beside teams: which ones, on how many worlds, and that nothing is special about problems of one's own."""

import dataclasses
from types import SimpleNamespace

import pytest

from icmape import UserError
from icmape.baselines.registry import beside_teams
from icmape.evaluation import beside
from icmape.evaluation.beside import OWN_NETWORK, affordable, curve_beside, measure, named, usual
from icmape.evaluation.stop_curves import computed_curve
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Turns
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.plot.charts import family_of
from icmape.problem import Centralized
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.signal.signal import Signal
from tests.coins import Coins

SMALL = Bandit(2, 2, 8)


class Guessed(Coins):
    """Coins of which nobody knows the exact posterior."""

    @property
    def posterior(self) -> str:
        return "none"


def team(problem: Coins | Bandit | Centralized, rounds: int = 3) -> Team:
    return Team(problem, Turns(problem), FixedLength(rounds), ExactInference())


def test_a_problem_says_which_of_its_rules_stand_beside_teams() -> None:
    assert beside_teams(SMALL) == {"open-loop": "a fixed schedule", "local-adaptive": "a decentralized rule"}
    assert list(beside_teams(Signal())) == ["sweep", "local-greedy"], "its own, not the one for any problem"


def test_a_problem_of_ones_own_has_a_round_robin() -> None:
    """By the exact posterior, or else by the team's own network."""
    assert beside_teams(Coins()) == {"turns": "a round robin"}
    assert usual(team(Coins())) == {"turns": ("a round robin", "turns")}
    guessing = team(Guessed())
    ((words, rule),) = usual(guessing).values()
    assert words == OWN_NETWORK
    assert family_of(words) is None, "it has another colour than the team"
    assert isinstance(rule, Team)
    assert rule.inference is guessing.inference
    assert rule.stop == FixedLength(Guessed().horizon - 1)


def test_agents_of_a_centralized_team_have_baselines_of_their_own() -> None:
    assert list(usual(team(Centralized(SMALL)))) == ["open-loop", "local-adaptive"]


def test_slow_baselines_get_fewer_worlds_and_fast_ones_all() -> None:
    assert affordable(200, 1.0, 2_000) == 2_000
    assert affordable(200, 20.0, 2_000) == 600
    assert affordable(200, 40.0, 2_000) == 200, "not twice as many: what was played is taken"
    assert affordable(200, 500.0, 2_000) == 200


def test_all_curves_are_of_the_same_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    """One takes 40 s for its first 200 worlds, and 20 s for others: both get 600."""
    asked, ends = [], [0, 1, 1, 41, 41, 61, 61, 62, 62, 100]
    clock = iter(map(float, ends))
    monkeypatch.setattr(beside, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    curve = computed_curve([(0, 1.0, 0.5), (1, 2.0, 0.95)], 0.9)
    monkeypatch.setattr(beside, "baseline_stop_curve", lambda name, *_, **sizes: asked.append((name, sizes)) or curve)
    rules = {"a": ("a rule", "a"), "b": ("", "b")}
    found, worlds = measure(rules, Coins(), delta=0.1, worlds=2_000, seed=3, in_time=True)
    assert worlds == 600
    assert [(name, sizes["episodes"], sizes["seed"]) for name, sizes in asked] == [
        *(("a", 200, 3), ("b", 200, 3), ("b", 200, 4), ("a", 600, 3), ("b", 600, 3))
    ]
    assert [rule.label for rule in found] == ["rule (a)", "b (baseline)"]


def test_what_does_not_fit_is_refused_where_it_is_named_and_left_out_where_it_is_not() -> None:
    with pytest.raises(UserError, match="sweep is for"):
        named(team(Coins()), ["turns", "sweep"])
    rules = {"turns": ("a round robin", "turns"), "sweep": ("", "sweep")}
    found, _ = measure(rules, Coins(), delta=0.1, worlds=100, seed=0, in_time=True)
    assert [rule.name for rule in found] == ["turns"]


def test_a_name_means_what_stands_there_without_being_named() -> None:
    guessing = team(Guessed())
    assert named(guessing, ["turns"])["turns"][0] == usual(guessing)["turns"][0]
    assert named(guessing, ["plan"]) == {"plan": ("", "plan")}
    assert named(team(SMALL), ["random", "open-loop"]) == {
        "random": ("", "random"),
        "open-loop": ("a fixed schedule", "open-loop"),
    }


def test_a_curve_is_at_the_teams_target_in_the_worlds_of_the_baselines() -> None:
    """A round robin of one coin is the team itself: the same curve, and no difference."""
    mine = curve_beside(team(Coins()), 300, 5, 0.9)
    (rule,), _ = measure(usual(team(Coins())), Coins(), delta=0.1, worlds=300, seed=5, in_time=True)
    assert mine is not None
    assert dataclasses.replace(mine, own=None) == rule.curve, "only a team has a stop of its own"
