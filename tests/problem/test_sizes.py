"""Arguments are compared with their types, and what cannot fit in memory is refused before it is allocated."""

import dataclasses

import pytest

from icmape import UserError, load
from icmape.cli import main
from icmape.cli.teams import changes_of
from icmape.learning.check_config import check
from icmape.learning.config import Config
from icmape.memory import check_fits, in_units, machine_bytes
from icmape.networks.sizes import Network
from icmape.play import episodes
from icmape.play.episodes import check_episodes
from icmape.problem.sizes import check_size, sizes_of
from icmape.problem.spec import build, build_named
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.signal.signal import Signal
from tests.support import lively_team, small_bandit

SYNTHETIC = {"synthetic": 1, "rows": 4, "columns": 4, "years": [2001], "training_years": [2001]}


@pytest.mark.parametrize(
    ("kind", "arguments", "named"),
    [
        ("bandit", {"armz": 3}, "bandit has no argument 'armz': did you mean arms"),
        ("bandit", {"arms": "3"}, "arms of bandit must be a whole number; given '3'"),
        ("bandit", {"arms": 2.5}, "arms of bandit must be a whole number"),
        ("bandit", {"arms": True}, "arms of bandit must be a whole number"),
        ("bandit", {"arms": None}, "arms of bandit must be a whole number"),
        ("bandit", {"mean_low": "x"}, "mean_low of bandit must be a number"),
        ("bandit", {"mean_low": float("nan")}, "mean_low of bandit must be a number"),
        ("bandit", {"mean_low": 10**400}, "mean_low of bandit must be a number"),
        ("bandit", {"mean_alpha": [1]}, "mean_alpha of bandit must be a number or none"),
        ("bandit", {"team_tokens": "load"}, "team_tokens of bandit must be one of loads, readings"),
        ("signal", {"starts": 5}, "starts of signal must be a list, each entry a list"),
        ("signal", {"observe_start": "no"}, "observe_start of signal must be true or false"),
        ("signal", {"information": ["strict"]}, "information of signal must be one of"),
        ("hotspot", {"k": 1.5}, "k of hotspot must be a whole number"),
        ("hotspot", {"valid": [1.5]}, "valid of hotspot must be a list, each entry a whole number"),
        ("hotspot", {"latitudes": "37,39"}, "latitudes of hotspot must be a list, each entry a number"),
    ],
)
def test_an_argument_of_another_name_or_type_is_refused(kind, arguments, named):
    with pytest.raises(UserError, match=named):
        build_named(kind, arguments)


def test_a_team_file_and_changes_of_it_are_checked_too():
    with pytest.raises(UserError, match="bandit has no argument 'horizons': did you mean horizon"):
        load("bandit-quick", horizons=3)
    with pytest.raises(UserError, match="did you mean arms"):
        build({"kind": "bandit", "arguments": {"arm": 2}})
    assert float(load("bandit-quick", mean_low=0.5).problem.mean_low) == 0.5


@pytest.mark.parametrize(
    ("kind", "arguments", "named"),
    [
        ("bandit", {"arms": 10**9}, "1,000,000,000 arms and 5 players would take about .* TB, and this machine has"),
        ("bandit", {"arms": 40_000, "players": 1}, "40,000 actions; at most 32,766 can be stored"),
        ("signal", {"horizon": 10**10}, "one episode of this Signal would take about .* TB"),
        ("hotspot", {**SYNTHETIC, "agents": 10**10}, "one episode of this Hotspot would take about"),
        ("hotspot", {**SYNTHETIC, "repeats": 10**11}, "a size of this Hotspot is beyond what 32 bits count"),
        ("hotspot", {**SYNTHETIC, "horizon": 10**12}, "one episode of this Hotspot would take about"),
        ("hotspot", {**SYNTHETIC, "rows": 10**9}, "a grid of 1,000,000,000 × 4 cells would take about"),
        ("hotspot", {**SYNTHETIC, "fit": 10**9}, "a field fitted to 1,000,000,000 readings would take about"),
    ],
)
def test_problems_that_cannot_fit_are_refused_with_an_estimate(kind, arguments, named):
    with pytest.raises(UserError, match=named):
        build_named(kind, arguments)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"buffer_size": 10**9}, "a replay buffer of 1,000,000,000 episodes would take about .* choose a smaller"),
        ({"network": Network(hidden_size=10**6)}, "networks of hidden_size 1,000,000 would take about .* TB"),
        ({"validation_episodes": 2 * 10**9}, "episodes at once would take about .* lower validation_episodes"),
        ({"population_size": 10**8}, "the training of 100,000,000 teams would take about"),
        ({"iterations": 10**12}, "iterations must be at least 1 and at most 2,147,483,647"),
    ],
)
def test_trainings_that_cannot_fit_are_refused_with_an_estimate(changes, named):
    check(Config(), small_bandit())
    with pytest.raises(UserError, match=named):
        check(dataclasses.replace(Config(), **changes), small_bandit())


@pytest.mark.parametrize("command", ["evaluate", "certify"])
def test_more_episodes_than_there_are_worlds_are_refused_by_commands(command, capsys):
    flag = "--worlds" if command == "certify" else "--episodes"
    assert main([command, "bandit-quick", flag, str(10**20)]) == 2
    assert "worlds are numbered in 32 bits" in capsys.readouterr().err


def test_episodes_past_their_stops_are_refused_before_anything_is_played(monkeypatch):
    """Without the check, 10^9 of them end the process."""
    monkeypatch.setattr(episodes, "_parts", lambda *arguments: pytest.fail("episodes were played"))
    with pytest.raises(UserError, match=r"1,000,000,000 episodes past their stops would take about .* play fewer"):
        episodes.watch_past_stops(lively_team(), 10**9, seed=0)
    with pytest.raises(UserError, match="worlds are numbered in 32 bits"):
        episodes.watch_past_stops(lively_team(), 10**10, seed=0)


def test_an_estimate_counts_what_is_stored():
    """One int8 per agent for the action and one for the observation, twice the former at most, and a flag a round."""
    bandit = small_bandit()
    assert sizes_of(bandit).stored == bandit.horizon * (3 + 2 * 3 + 1)
    check_episodes(bandit, 10_000)
    check_size(Signal())
    assert sizes_of(Hotspot(**SYNTHETIC)).stored == 40 * (6 * 5 * 2 + 2 * 6 + 1)


def test_the_limit_is_the_memory_of_this_machine():
    assert 2**27 < machine_bytes() < 2**50
    check_fits("half", machine_bytes() / 2, "")
    with pytest.raises(UserError, match=r"all of it would take about .*: buy some"):
        check_fits("all of it", machine_bytes(), "buy some")
    assert [in_units(x) for x in (5e5, 1.5e9, 2e12, 1e21)] == ["0.5 MB", "1.5 GB", "2.0 TB", "1e+09 TB"]


def test_a_list_of_years_has_an_end():
    with pytest.raises(UserError, match="lists of at most 10,000 numbers"):
        changes_of([], ["years=1-100000000000000"])
    assert changes_of([], ["years=2001-2003"]) == {"years": [2001, 2002, 2003]}
