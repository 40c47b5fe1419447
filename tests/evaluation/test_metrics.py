"""The numbers of an evaluation, and what they must not depend on."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest

from icmape import UserError
from icmape.evaluation.calibration import calibration_error
from icmape.evaluation.intervals import wilson_interval
from icmape.evaluation.metrics import constant_worlds, evaluate
from icmape.play import episodes
from icmape.play.episodes import play
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import Threshold
from icmape.play.team import Team
from tests.support import lively_team, small_bandit


@pytest.fixture(scope="module")
def team() -> Team:
    return lively_team()


@pytest.fixture(scope="module")
def result(team):
    return evaluate(team, episodes=300, seed=1)


def test_calibration_error_by_hand():
    """Ten bins. In [0.9, 1]: 0.95 and 1.0, one right: |1.95 - 1| = 0.95. In [0.5, 0.6): 0.5 and 0.55, both right:
    |1.05 - 2| = 0.95. In [0.2, 0.3): 0.2, wrong: 0.2. Together 2.1 over five answers.
    """
    confidence = np.array([0.95, 1.0, 0.5, 0.55, 0.2])
    correct = np.array([True, False, True, True, False])
    assert calibration_error(confidence, correct) == pytest.approx(2.1 / 5)


def test_errors_of_opposite_sign_in_one_bin_cancel_and_in_two_do_not():
    correct = np.array([True, False])
    assert calibration_error(np.array([0.5, 0.5]), correct) == pytest.approx(0.0)
    assert calibration_error(np.array([0.75, 0.25]), correct) == pytest.approx(0.25)


def test_wilson_interval_is_the_known_one():
    """8 of 10 at 95 %: (0.490, 0.943), Wilson (1927) by the formula with z = 1.959964."""
    low, high = wilson_interval(8, 10)
    z, p, n = 1.959964, 0.8, 10
    centre, half = (p + z**2 / (2 * n)), z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert (low, high) == pytest.approx(((centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n)), abs=1e-6)
    assert (low, high) == pytest.approx((0.490, 0.943), abs=1e-3)
    assert wilson_interval(0, 10)[0] == pytest.approx(0.0, abs=1e-12)


def test_tau_counts_the_stop_round_and_readings_every_player(result, team):
    played = play(team, 300, seed=1)
    assert len(set(played.played.stop.tolist())) > 1
    assert result.rounds == pytest.approx(played.played.stop.mean())
    assert result.tau == pytest.approx(result.rounds + 1)
    assert result.readings == pytest.approx(3 * result.rounds)
    assert result.forced == pytest.approx(np.mean(played.played.stop == 6))
    assert result.tau_error == pytest.approx(played.played.stop.std() / math.sqrt(300), rel=1e-5)


def test_only_rounds_that_took_place_are_judged(team, result):
    """ECE and log loss pool every prefix up to the stop; accuracy looks at the stop alone."""
    played = play(team, 300, seed=1)
    confidence, correct, losses, at_stop = [], [], [], []
    for row, stop in enumerate(played.played.stop):
        confidence += list(played.team.confidence[row, : stop + 1])
        correct += list(played.team.correct[row, : stop + 1])
        losses += list(played.team.log_loss[row, : stop + 1])
        at_stop.append(played.team.correct[row, stop])
    assert result.ece == pytest.approx(calibration_error(np.array(confidence), np.array(correct)), abs=1e-6)
    assert result.log_loss == pytest.approx(np.mean(losses), rel=1e-5)
    assert result.accuracy == pytest.approx(np.mean(at_stop))


def test_the_same_seed_gives_the_same_numbers_and_another_others(team, result):
    assert evaluate(team, episodes=300, seed=1) == result
    other = evaluate(team, episodes=300, seed=2)
    assert other.accuracy != result.accuracy or other.tau != result.tau


def test_numbers_do_not_depend_on_the_batch_size(monkeypatch, team, result):
    """300 worlds in batches of 128, the last of them filled up."""
    monkeypatch.setattr(episodes, "BATCH", 128)
    for name, value in dataclasses.asdict(evaluate(team, episodes=300, seed=1)).items():
        expected = getattr(result, name)
        assert value == (expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-5)), name


def test_every_batch_is_announced(monkeypatch, team):
    monkeypatch.setattr(episodes, "BATCH", 128)
    told = []
    play(team, 300, seed=1, tick=told.append)
    assert sum(told) >= 300
    assert len(told) == 3


def test_the_no_data_answer_of_a_uniform_bandit_is_a_guess(result):
    """One of 3² capacity pairs, judged on 20,000 worlds. 5 standard errors: false alarm about 1e-6."""
    assert result.no_data_accuracy == pytest.approx(1 / 9, abs=5 * math.sqrt(1 / 9 * 8 / 9 / 1000))


def test_the_worlds_of_the_no_data_answer_follow_the_episodes():
    """A small evaluation is not held up by 40,000 worlds, which may take longer than its episodes."""
    assert [constant_worlds(count) for count in (1, 500, 3000, 10_000, 10**7)] == [1000, 1000, 6000, 20_000, 20_000]


def test_no_data_is_beaten_only_by_the_whole_interval(result):
    level = result.accuracy_low
    beaten = dataclasses.replace(result, no_data_accuracy=level - 0.01)
    not_beaten = dataclasses.replace(result, no_data_accuracy=level + 0.01)
    assert beaten.beats_no_data
    assert not not_beaten.beats_no_data
    assert "NOT BEATEN" in str(not_beaten)
    assert "NOT BEATEN" not in str(beaten)


@pytest.fixture(scope="module")
def careful() -> Team:
    """A schedule that is stopped once the exact posterior is sure enough."""
    table = jnp.array([[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0]])
    return Team(small_bandit(), Schedule(table, 3), Threshold(0.6), ExactInference())


def test_exact_inference_in_place_of_the_network_is_the_exact_posterior(careful):
    found = evaluate(careful, episodes=300, seed=1)
    assert found.exact == "exact"
    assert found.accuracy == found.exact_accuracy
    assert found.ece == found.exact_ece
    assert found.log_loss == found.exact_log_loss


def test_no_inference_beats_the_exact_one(result):
    """On the same episodes, in expectation: here an untrained network is far behind."""
    assert result.log_loss > result.exact_log_loss + 0.1


def test_a_threshold_stops_at_the_first_round_that_is_sure_enough(careful):
    found = play(careful, 300, seed=1)
    confidence, stop = found.team.confidence, found.played.stop
    assert len(set(stop.tolist())) > 2
    for row in range(300):
        assert np.all(confidence[row, : stop[row]] < 0.6)
        assert confidence[row, stop[row]] >= 0.6 or stop[row] == small_bandit().horizon - 1


def test_an_impossible_evaluation_is_refused(team):
    with pytest.raises(UserError, match="at least one episode; given 0"):
        evaluate(team, episodes=0)
    with pytest.raises(UserError, match="seed"):
        evaluate(team, episodes=1, seed=-1)


def test_what_is_printed_explains_its_symbols(result):
    accuracy, tau, ece, *_, bare, last = str(result).splitlines()
    assert "right answers; target " in accuracy
    assert last.endswith("in brackets 95 % intervals")
    assert f"rounds, the stop included; {result.rounds:.3f} of readings" in tau
    low, high = (result.tau + side * 1.96 * result.tau_error for side in (-1, 1))
    assert f"{result.tau:.3f}  [{low:.3f}, {high:.3f}]" in tau
    assert "calibration error" in ece
    assert bare.startswith("best answer without data: ")
