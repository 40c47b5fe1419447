"""Confidence against how often it was right: by hand, by the paper's table, and by the law of large numbers."""

import json
import sys

import numpy as np
import pytest
from scipy import stats

from icmape.evaluation.calibration import Bin, Calibration, bin_error, bin_of, calibrate, calibration_error
from icmape.reproduction import paper


def test_bins_by_hand():
    """[0.9, 1]: 0.95 right and 1.0 wrong; [0.5, 0.6): 0.5 and 0.55 right; [0.2, 0.3): 0.2 wrong."""
    found = calibrate(np.array([0.95, 1.0, 0.5, 0.55, 0.2]), np.array([True, False, True, True, False]))
    filled = {round(one.low, 1): one for one in found.bins if one.size}
    assert [(low, one.size, one.accuracy) for low, one in filled.items()] == [(0.2, 1, 0), (0.5, 2, 1), (0.9, 2, 0.5)]
    assert [one.confidence for one in filled.values()] == pytest.approx([0.2, 0.525, 0.975])
    assert filled[0.5].gap == pytest.approx(-0.475)
    assert found.largest_gap == pytest.approx(0.475)
    assert found.ece == pytest.approx((0.2 + 2 * 0.475 + 2 * 0.475) / 5)
    assert found.count == 5


def test_an_empty_bin_has_no_confidence_and_no_gap():
    found = calibrate(np.array([0.95]), np.array([True]))
    assert found.bins[0] == Bin(0.0, 0.1, 0, None, None)
    assert found.bins[0].gap == 0.0


def test_edges_belong_to_the_bin_above_and_one_to_the_last():
    np.testing.assert_array_equal(bin_of(np.array([0.0, 0.0999, 0.5, 0.999, 1.0])), [0, 0, 5, 9, 9])


def test_both_ways_to_the_calibration_error_agree():
    chance = np.random.default_rng(0)
    confidence, correct = chance.uniform(size=500), chance.uniform(size=500) < 0.6
    assert calibrate(confidence, correct).ece == pytest.approx(calibration_error(confidence, correct))


def test_the_papers_table_gives_an_error_within_its_rounding():
    """Its differences have two digits: each may be 0.005 larger or smaller, and is not below 0."""
    assert paper.ECE_ROUNDING[0] < bin_error(paper.CALIBRATION) < paper.ECE_ROUNDING[1]
    sizes = np.array([one.size for one in paper.CALIBRATION])
    gaps = np.array([abs(one.gap) for one in paper.CALIBRATION])
    range_ = [float(sizes @ np.maximum(gaps + by, 0) / sizes.sum()) for by in (-0.005, 0.005)]
    assert range_ == pytest.approx(paper.ECE_ROUNDING, abs=5e-5)
    assert range_[0] < paper.ECE < range_[1]


def test_the_papers_stopping_times_are_the_sums_of_its_active_episodes():
    for name in ("a3p5", "signal"):
        assert sum(paper.ACTIVE[name]) / paper.ACTIVE[name][0] == pytest.approx(
            paper.FINAL[name]["icmape"].tau, abs=0.005
        )


def test_brier_and_log_loss_by_hand():
    """0.8 and right: 0.04; 0.6 and wrong: 0.36."""
    found = calibrate(np.array([0.8, 0.6]), np.array([True, False]), np.array([0.2, 1.0]))
    assert found.brier == pytest.approx(0.2)
    assert found.log_loss == pytest.approx(0.6)


def test_nothing_beyond_the_packages_own_dependencies_is_needed(monkeypatch):
    """scikit-learn is for tests only."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    assert calibrate(np.array([0.8]), np.array([True])).brier == pytest.approx(0.04)


def answers(seed: int, count: int, power: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Confidence, and answers that are right with that probability to some power."""
    chance = np.random.default_rng(seed)
    confidence = chance.uniform(0.05, 0.95, count)
    return confidence, chance.uniform(size=count) < confidence**power


def test_confidence_that_is_right_passes_and_confidence_that_is_not_fails():
    """1 % false alarm for the first, by its definition; the second is right as often as its square says."""
    assert calibrate(*answers(0, 5000)).p_value > 0.01
    assert calibrate(*answers(0, 5000, power=2.0)).p_value < 1e-6


def coin_episodes(seed: int, count: int, rounds: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The exact posterior of which of two coins is tossed, after every toss: confidence, right, episode."""
    chance = np.random.default_rng(seed)
    truth = chance.integers(0, 2, (count, 1))
    heads = chance.uniform(size=(count, rounds)) < np.where(truth == 1, 0.6, 0.4)
    odds = np.cumsum(np.where(heads, 1, -1), axis=1) * np.log(0.6 / 0.4)
    belief = 1 / (1 + np.exp(-odds))
    which = np.broadcast_to(np.arange(count)[:, None], belief.shape)
    # a tie is decided by a coin of its own, as 1 would be right as often as 0
    says = np.where(odds == 0, chance.integers(0, 2, odds.shape), odds > 0)
    return np.maximum(belief, 1 - belief).ravel(), (says == truth).ravel(), which.ravel()


@pytest.mark.parametrize("make", [lambda seed: (*answers(seed, 800), None), lambda seed: coin_episodes(seed, 400)])
def test_a_right_confidence_has_uniform_p_values(make):
    """Below 0.05 in about 5 % of 400 seeds, and below a half in half of them, also where answers of one episode are
    alike. 5 standard errors each: false alarm below 1e-5, were they exactly uniform.
    """
    found = []
    for seed in range(400):
        confidence, right, episode = make(seed)
        found.append(calibrate(confidence, right, episode=episode).p_value)
    for level in (0.05, 0.5):
        error = np.sqrt(level * (1 - level) / 400)
        assert np.mean(np.array(found) < level) == pytest.approx(level, abs=5 * error)
    assert stats.kstest(found, "uniform").statistic < 0.12, "law of the statistic: P(> 0.12) is about 2e-5"


def test_copies_of_an_answer_are_no_evidence():
    """Twenty copies of each under the name of one episode: the same p-value. Without the name they seem to be much."""
    confidence, right = answers(3, 600, power=1.15)
    alone = calibrate(confidence, right)
    copies = [np.repeat(values, 20) for values in (confidence, right, np.arange(600))]
    assert calibrate(copies[0], copies[1], episode=copies[2]).p_value == pytest.approx(alone.p_value, rel=1e-6)
    assert alone.p_value > 0.01
    assert calibrate(copies[0], copies[1]).p_value < 1e-6


def test_too_few_answers_have_no_p_value():
    """Ten answers at a half have a variance of 2.5 right ones."""
    assert calibrate(np.full(10, 0.5), np.ones(10, bool)).p_value is None
    assert calibrate(np.full(20, 0.5), np.ones(20, bool)).p_value is not None


@pytest.mark.parametrize("count", [1, 300])
def test_a_calibration_survives_json(count):
    confidence, right = answers(1, count)
    found = calibrate(confidence, right, np.ones(count))
    assert Calibration.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_certainty_that_is_wrong_is_noticed_and_certainty_that_is_right_is_not() -> None:
    """10,000 answers at 0.9999: one wrong is expected; a fifth wrong is none of chance's doings."""
    sure = np.full(10_000, 0.9999)
    assert calibrate(sure, np.arange(10_000) >= 1).p_value is None
    found = calibrate(sure, np.arange(10_000) >= 2_000).p_value
    assert found is not None
    assert found < 1e-12
