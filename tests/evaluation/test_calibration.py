"""Confidence against how often it was right: by hand, by the paper's table, and by the law of large numbers."""

import json
import sys

import numpy as np
import pytest
from scipy import stats

from icmape.evaluation.calibration import Bin, Calibration, _surprises, bin_error, bin_of, calibrate, calibration_error
from paper import printed as paper


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


def test_the_error_of_independent_answers_is_that_of_a_share():
    """Three of four right: √(3/4 · 1/4 / 4). A share of 0 or 1 has none; an empty bin has nothing."""
    found = calibrate(np.array([0.72, 0.74, 0.76, 0.78, 0.95]), np.array([True, True, False, True, True]))
    assert [one.error for one in found.bins if one.size] == pytest.approx([np.sqrt(3 / 64), 0.0])
    assert found.bins[0].error is None


def test_the_error_where_answers_of_one_episode_are_alike_by_hand():
    """Episode 7: both right; episode 3: one of two. The share is 3/4, and the episodes' sums are ½ above and below it:
    √(¼ + ¼) of four answers. The wrong answer of episode 7 in another bin is alone there.
    """
    sure, right = np.array([0.72, 0.74, 0.76, 0.78, 0.2]), np.array([True, True, False, True, False])
    found = calibrate(sure, right, episode=np.array([7, 7, 3, 3, 7]))
    assert [one.error for one in found.bins if one.size] == pytest.approx([0.0, np.sqrt(0.5) / 4])


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


def coins_at_the_stop(seed: int, count: int) -> tuple[np.ndarray, np.ndarray, None]:
    """The last answers alone, where each episode ends when its answer is sure enough; they are independent."""
    confidence, right, _ = (values.reshape(count, -1) for values in coin_episodes(seed, count))
    enough = confidence > 0.75
    stop = np.where(enough.any(axis=1), enough.argmax(axis=1), confidence.shape[1] - 1)
    return confidence[np.arange(count), stop], right[np.arange(count), stop], None


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda seed: (*answers(seed, 800), None), id="independent"),
        pytest.param(lambda seed: coins_at_the_stop(seed, 2000), id="at the stop"),
        pytest.param(lambda seed: coin_episodes(seed, 1000), id="all rounds"),
    ],
)
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


def test_the_variance_of_independent_answers_is_the_one_that_confidence_states():
    """40 answers at 0.5, 28 of them right: (28 - 20)² / 10 is χ² with one degree of freedom. Those of episodes tell
    theirs: 240 with 132 right have (132 - 120)² / 60.
    """
    assert calibrate(np.full(40, 0.5), np.arange(40) < 28).p_value == pytest.approx(stats.chi2.sf(6.4, 1))
    found = calibrate(np.full(240, 0.5), np.arange(240) < 132, episode=np.arange(240)).p_value
    assert found == pytest.approx(stats.chi2.sf(2.4, 1))


def test_copies_of_an_answer_are_no_evidence():
    """Twenty copies of each under the name of one episode: the same p-value and the same errors. Without the name they
    seem to be much.
    """
    confidence, right = answers(3, 6000, power=1.05)
    alone = calibrate(confidence, right, episode=np.arange(6000))
    copies = [np.repeat(values, 20) for values in (confidence, right, np.arange(6000))]
    named, unnamed = calibrate(copies[0], copies[1], episode=copies[2]), calibrate(copies[0], copies[1])
    assert named.p_value == pytest.approx(alone.p_value, rel=1e-6)
    assert [one.error for one in named.bins] == pytest.approx([one.error for one in alone.bins])
    assert alone.p_value > 0.01
    assert unnamed.p_value < 1e-6
    filled = [(one.error, other.error) for one, other in zip(unnamed.bins, alone.bins, strict=True) if one.size]
    assert [one for one, _ in filled] == pytest.approx([other / np.sqrt(20) for _, other in filled])


def test_surprises_are_counted_by_the_first_answer_of_an_episode():
    """Coins of 0.8 and 0.2, tossed until a lead of three or ten times, and answers surer than 0.9: about as many of the
    first are wrong as they say (false alarm 0.001). Who is wrong is sure for the last time sooner than who is right, so
    the last answers would be wrong far more often than they say.
    """
    chance = np.random.default_rng(0)
    steps = np.where(chance.uniform(size=(20_000, 10)) < 0.8, 1, -1)  # towards the truth
    lead = np.cumsum(steps, axis=1)
    ended = np.cumsum(np.abs(lead) >= 3, axis=1) - (np.abs(lead) >= 3) > 0  # in a round before
    sure = 1 / (1 + 4.0 ** -np.abs(lead))
    kept = ~ended & (sure > 0.9)
    owner = np.broadcast_to(np.arange(20_000)[:, None], lead.shape)
    confidence, right, who = sure[kept], (lead > 0)[kept], owner[kept]
    assert 0.001 < _surprises(confidence, right, who) < 0.999
    assert _surprises(confidence[::-1], right[::-1], who[::-1]) < 1e-6


def test_too_few_answers_have_no_p_value():
    """Ten answers at a half have a variance of 2.5 right ones."""
    assert calibrate(np.full(10, 0.5), np.ones(10, bool)).p_value is None
    assert calibrate(np.full(20, 0.5), np.ones(20, bool)).p_value is not None


def test_it_takes_more_where_the_variance_is_estimated():
    """A hundred at a half have 25, twice as many 50."""
    for count, enough in ((100, False), (200, True)):
        found = calibrate(np.full(count, 0.5), np.arange(count) % 2 == 0, episode=np.arange(count))
        assert (found.p_value is not None) == enough


@pytest.mark.parametrize("count", [1, 300])
def test_a_calibration_survives_json(count):
    confidence, right = answers(1, count)
    found = calibrate(confidence, right, np.ones(count))
    values = json.loads(json.dumps(found.to_dict()))
    assert Calibration.from_dict(values) == found
    assert [one["error"] is None for one in values["bins"]] == [one.size == 0 for one in found.bins]


def test_certainty_that_is_wrong_is_noticed_and_certainty_that_is_right_is_not() -> None:
    """10,000 answers at 0.9999: one wrong is expected; a fifth wrong is none of chance's doings."""
    sure = np.full(10_000, 0.9999)
    assert calibrate(sure, np.arange(10_000) >= 1).p_value is None
    found = calibrate(sure, np.arange(10_000) >= 2_000).p_value
    assert found is not None
    assert found < 1e-12
