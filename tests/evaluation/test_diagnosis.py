"""What a replaced part changes, on a team whose parts are known to be good or bad."""

import dataclasses

import numpy as np
import pytest

from icmape import UserError
from icmape.baselines import registry
from icmape.baselines.registry import baseline_team
from icmape.evaluation.diagnosis import Point, clock_point, diagnose, who_stops
from icmape.play.episodes import play
from icmape.play.stop import LearnedStop, Threshold
from tests.support import lively_team, small_bandit

EPISODES = 400


@pytest.fixture(scope="module")
def team():
    """A schedule that is left early by its players."""
    return baseline_team("open-loop-local-stop", small_bandit(), level=0.95)


@pytest.fixture(scope="module")
def found(team):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "rivals", lambda problem: ["central-greedy"])
        return diagnose(team, episodes=EPISODES)


def test_the_exact_posterior_in_place_of_itself_changes_nothing(found):
    own, exact = found.rows[:2]
    assert (own.accuracy, own.expected, own.tau) == (exact.accuracy, exact.expected, exact.tau)


def test_rows_are_at_the_teams_accuracy(found):
    for row in found.rows[2:]:
        assert row.expected == pytest.approx(found.rows[0].expected, abs=0.04), row


def test_seeing_everything_saves_rounds_and_a_clock_costs_some(found):
    saves = {row.what: row.saves for row in found.rows}
    assert saves["sampling and stop: central-greedy"] > 0.1
    assert saves["stop: by the clock"] < 0.05
    for row in found.rows:
        assert row.saves == pytest.approx(found.rows[0].tau - row.tau)


def test_the_clock_lies_between_two_lengths(team):
    """Its point interpolates what lengths n and n + 1 give when they are played."""
    from icmape.play.stop import FixedLength

    target = 0.5
    point = clock_point(team, target, EPISODES, 0)
    before, after = (
        Point.of(play(dataclasses.replace(team, stop=FixedLength(int(point.tau) - 1 + more)), EPISODES, 0))
        for more in (0, 1)
    )
    assert before.expected < target <= after.expected
    part = (target - before.expected) / (after.expected - before.expected)
    assert point.tau == pytest.approx(before.tau + part, abs=1e-5)


def test_how_many_stopped_by_hand(team):
    played = play(team, 4, 0)
    actions = np.full((4, small_bandit().horizon, 3), 2, np.int8)  # STOP is 2; the last was forced
    stop = np.array([1, 2, 0, small_bandit().horizon - 1])
    actions[0, 1], actions[2, 0] = [2, 0, 2], [0, 2, 1]
    played = played._replace(played=played.played._replace(actions=actions, stop=stop))
    assert who_stops(played, 2) == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 1 / 3})


def test_teams_without_a_stop_of_their_own_are_refused():
    with pytest.raises(UserError, match="stop by themselves"):
        diagnose(dataclasses.replace(lively_team(), stop=Threshold(0.9)))


def test_too_few_worlds_are_refused():
    with pytest.raises(UserError, match="at least 100"):
        diagnose(dataclasses.replace(lively_team(), stop=LearnedStop()), episodes=10)
