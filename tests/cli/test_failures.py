"""Rates of failures on the command line."""

import json

import pytest

from examples.coins import Coins
from icmape import UserError
from icmape.cli import main
from icmape.cli.train import _starting_point
from icmape.evaluation.failures import failure_curve
from icmape.learning.config import Config
from icmape.learning.run_folder import read_config, write_config
from icmape.problem import Centralized, Unreliable
from icmape.problem.spec import build, build_named, describe
from tests.support import lively_team, small_bandit

RATES = {"lost": 0.25, "silent": 0.0, "late": 0.5}


def test_an_evaluation_under_failures_is_that_of_the_curve_and_says_its_rates(tmp_path, capsys) -> None:
    team = lively_team()
    team.save(tmp_path / "team.safetensors")
    out = tmp_path / "out.json"
    assert (
        main(["evaluate", str(tmp_path / "team.safetensors"), "--lost", "0.5", "--episodes", "50", "--out", str(out)])
        == 0
    )
    result = json.loads(out.read_text())
    assert result["problem"]["unreliable"] == {"lost": 0.5, "silent": 0.0, "late": 0.0}
    assert "readings lost 0.5" in capsys.readouterr().out
    (point,) = failure_curve(team, "lost", [0.5], episodes=50)
    assert (point.accuracy, point.tau) == (pytest.approx(result["accuracy"]), pytest.approx(result["tau"]))


def test_points_of_a_curve_that_are_known_are_not_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    (known,) = failure_curve(lively_team(), "late", [0.0], episodes=50)
    monkeypatch.setattr("icmape.evaluation.failures.play", None)
    assert list(failure_curve(lively_team(), "late", [0.0], episodes=50, known=[known])) == [known]


def test_a_run_with_failures_is_described_and_repeated(tmp_path) -> None:
    problem = Centralized(Unreliable(small_bandit(), lost=0.1, late=0.5))
    write_config(tmp_path, problem, Config())
    kind, arguments, _ = read_config(tmp_path / "config.json")
    assert build_named(kind, arguments).problem.rates == {"lost": 0.1, "silent": 0.0, "late": 0.5}
    start = _starting_point(None, {"config": str(tmp_path / "config.json"), "silent": "0.2"})
    assert start.centralized
    assert start.rates == {"lost": 0.1, "silent": 0.2, "late": 0.5}
    assert _starting_point("bandit-quick", {"lost": "0.3"}).rates == {"lost": 0.3}


@pytest.mark.parametrize(
    "kind",
    [
        "unreliable(lost=0.1)-bandit",
        "unreliable(lost=0.1,silent=0.0,late=0.0,early=0.1)-bandit",
        "unreliable(lost=0.1,silent=0.0,silent=0.0)-bandit",
        "unreliable(lost=0.1,silent=0.0,late=nan)-bandit",
        "unreliable(lost=2,silent=0.0,late=0)-bandit",
        "unreliable(lost=much,silent=0.0,late=0)-bandit",
        "unreliable()-bandit",
    ],
)
def test_a_kind_with_other_rates_is_refused(kind: str) -> None:
    with pytest.raises(UserError, match="lost, silent and late with a probability each"):
        build_named(kind, {})


def test_a_class_behind_rates_must_be_named_by_the_user(tmp_path) -> None:
    with pytest.raises(UserError, match=r"--problem examples\.coins:Coins"):
        build_named("centralized-unreliable(lost=0.1,silent=0.0,late=0.0)-examples.coins:Coins", {})
    write_config(tmp_path, Unreliable(Coins(), lost=0.1), Config())
    choices = {"config": str(tmp_path / "config.json")}
    with pytest.raises(UserError, match=r"--problem examples\.coins:Coins"):
        _starting_point(None, choices)
    start = _starting_point(None, {**choices, "problem": "examples.coins:Coins"})
    assert (start.problem, start.rates["lost"]) == (Coins, 0.1)


@pytest.mark.parametrize(
    "rates", [{"lost": 0.1}, {**RATES, "early": 0.1}, {**RATES, "lost": True}, {**RATES, "late": "1"}, 3]
)
def test_a_description_with_other_rates_is_refused(rates) -> None:
    described = {**describe(Unreliable(small_bandit(), lost=0.1)), "unreliable": rates}
    with pytest.raises(ValueError, match=r"must hold late, lost, silent|is a probability"):
        build(described)
    assert build({**described, "unreliable": RATES}).rates == RATES


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train", "bandit-quick", "--lost", "much"], "--lost takes a probability"),
        (["train", "bandit-quick", "--lost", "2"], "lost is a probability, from 0 to 1"),
        (["evaluate", "bandit-quick", "--late", "-1"], "late is a probability, from 0 to 1"),
        (["train", "bandit-quick", "--late", "0.1", "--algorithm", "vdn"], "leave out late"),
    ],
)
def test_rates_that_cannot_be_are_refused(words: list[str], says: str, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert says in capsys.readouterr().err
