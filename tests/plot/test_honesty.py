"""Calibration without bins: the fit is the known one, an honest team stays in the band and a boastful one leaves it."""

import numpy as np
import pytest

from icmape.evaluation.calibration import Bin, Calibration
from icmape.plot.honesty import Fit, fit, fit_of_bins, honest, honesty_chart, honesty_words, isotonic, outside


def answers(count: int, boast: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Confidences between 0.5 and 1, right with that probability less `boast`."""
    chance = np.random.default_rng(7)
    sure = chance.uniform(0.5, 1.0, count)
    return sure, chance.uniform(size=count) < sure - boast


def test_neighbours_in_the_wrong_order_are_pooled() -> None:
    sure = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(isotonic(sure, np.array([0, 1, 0, 1])), [0, 0.5, 0.5, 1])
    np.testing.assert_allclose(isotonic(sure, np.array([1, 0, 0, 0])), 0.25)
    np.testing.assert_allclose(isotonic(np.full(4, 0.9), np.array([1, 0, 1, 1])), 0.75)


def test_the_steps_are_those_of_the_fit() -> None:
    found = fit(np.array([0.4, 0.1, 0.3, 0.2]), np.array([True, False, False, True]))
    np.testing.assert_allclose(found.confidence, [0.1, 0.2, 0.4])
    np.testing.assert_allclose(found.share, [0, 0.5, 1])


def test_bins_that_fall_are_pooled_and_empty_ones_are_not_there() -> None:
    """Of 100 answers at 0.6 are 70 right, of 300 at 0.7 are 180: together 250 of 400; of 50 at 0.9 all."""
    rows = {0.6: (100, 0.7), 0.7: (300, 0.6), 0.8: (0, None), 0.9: (50, 1.0)}
    bins = tuple(Bin(low, low + 0.1, size, low if size else None, share) for low, (size, share) in rows.items())
    found = fit_of_bins(Calibration(bins, 0.0, 0.0, 0.0, None, None, 450))
    corners = dict(zip(found.confidence.tolist(), found.share.tolist(), strict=True))
    assert corners == pytest.approx({0.6: 0.625, 0.9: 1.0})
    assert set(found.band[:, 0]) == {0.6, 0.7, 0.9}


def test_an_honest_team_stays_in_the_band_and_a_boastful_one_leaves_it() -> None:
    good, boastful = fit(*answers(2000)), fit(*answers(2000, 0.1))
    assert sum(outside(good)) <= 0.05
    assert honest(good)
    assert not honest(boastful)
    below, above = outside(boastful)
    assert below > 0.5
    assert above == 0
    modest = fit(*answers(2000, -0.1))
    assert outside(modest)[1] > 0.5
    said = [honesty_words(found) for found in (good, boastful, modest)]
    assert ["about as often" in said[0], "surer than" in said[1], "more often than it says" in said[2]] == [True] * 3
    assert (good.band[:, 1] <= good.band[:, 2]).all()
    inside = good.band[5:-5]
    assert np.mean((inside[:, 1] <= inside[:, 0]) & (inside[:, 0] <= inside[:, 2])) == 1, "the band is around honesty"


def test_the_band_narrows_with_more_answers() -> None:
    few, many = (fit(*answers(count)).band for count in (200, 5000))
    assert (few[:, 2] - few[:, 1]).mean() > 2 * (many[:, 2] - many[:, 1]).mean()


def test_the_same_answers_give_the_same_picture() -> None:
    first, second = (honesty_chart("t", "ours", fit(*answers(300)), "").inline() for _ in range(2))
    assert first == second


def test_nineteen_in_twenty_honest_teams_are_called_so() -> None:
    """Of 60 honest teams 3 on average are not: more than 9 have probability 0.001."""
    refused = 0
    for seed in range(60):
        chance = np.random.default_rng(100 + seed)
        sure = chance.uniform(0.5, 1.0, 300)
        refused += not honest(fit(sure, chance.uniform(size=300) < sure, seed))
    assert refused <= 9


def test_single_steps_outside_the_band_are_said_to_be_usual() -> None:
    """One of four points is above the band: too many only if honest teams leave it less."""
    band = np.array([[x, x - 0.05, x + 0.05] for x in (0.5, 0.6, 0.7, 0.8)])
    found = Fit(np.array([0.5, 0.8]), np.array([0.5, 0.9]), band, 0.8)
    low, high = outside(found)
    assert (low, high) == (0.5, 0.25), "the step at 0.5 holds to 0.7"
    assert honesty_words(found) == (
        "The team is right about as often as it says: the steps leave the shaded band at 75\u00a0% of the answers, and "
        "95 in 100 teams that are right as often as they say do so at up to 80\u00a0%."
    )
    assert "surer than it should be" in honesty_words(found._replace(usual=0.1))
    on_average = honesty_words(found, 0.02)
    assert on_average.startswith("On average over all answers the team is too sure; no confidence stands out:"), (
        "as the card"
    )
