"""Bounds and intervals, against definitions and cases worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from icmape import UserError
from icmape.evaluation.intervals import lower_bound, mean_interval, needed_successes


def test_no_success_promises_nothing():
    assert lower_bound(0, 10) == 0.0


@pytest.mark.parametrize(("count", "level"), [(1, 0.95), (29, 0.95), (300, 0.99)])
def test_successes_alone_have_a_bound_in_closed_form(count, level):
    """If all of n succeed, the bound is the p with pⁿ = 1 - level."""
    assert lower_bound(count, count, level) == pytest.approx((1 - level) ** (1 / count), rel=1e-9)


def test_bound_of_eight_in_ten_is_the_tabulated_one():
    """Clopper and Pearson (1934): 90 % two-sided limits of 8 in 10 are 0.4931 and 0.9632; ours is the lower one."""
    assert lower_bound(8, 10, 0.95) == pytest.approx(0.4931, abs=5e-5)


@pytest.mark.parametrize(("successes", "count", "level"), [(3, 7, 0.9), (8, 10, 0.95), (9050, 10_000, 0.95)])
def test_at_the_bound_so_many_successes_are_just_improbable_enough(successes, count, level):
    """P(X ≥ s) = 1 - level if the true share is the bound: its definition."""
    bound = lower_bound(successes, count, level)
    assert stats.binom.sf(successes - 1, count, bound) == pytest.approx(1 - level, rel=1e-8)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.77, 0.9, 0.99])
def test_the_bound_holds_as_often_as_it_says_whatever_the_share(share, level):
    """All outcomes of 25 trials with their probabilities: nothing is drawn."""
    chances = stats.binom.pmf(range(26), 25, share)
    holds = [lower_bound(successes, 25, level) <= share for successes in range(26)]
    assert chances[holds].sum() >= level


def test_the_bound_is_below_the_share_and_grows_with_successes():
    bounds = [lower_bound(successes, 40) for successes in range(41)]
    assert bounds == sorted(set(bounds))
    assert all(bound < successes / 40 for successes, bound in enumerate(bounds) if successes)


def test_nine_in_ten_takes_9050_of_ten_thousand():
    assert needed_successes(10_000, 0.9, 0.95) == 9050
    assert lower_bound(9050, 10_000) >= 0.9 > lower_bound(9049, 10_000)


@pytest.mark.parametrize(("count", "target", "level"), [(100, 0.9, 0.95), (57, 0.5, 0.8), (200, 0.95, 0.99)])
def test_needed_is_the_smallest_number_that_does(count, target, level):
    enough = [n for n in range(count + 1) if lower_bound(n, count, level) >= target]
    assert needed_successes(count, target, level) == min(enough)


def test_too_few_trials_cannot_show_anything_however_they_end():
    """0.9ⁿ ≤ 0.05 from n = 29 on."""
    assert needed_successes(28, 0.9, 0.95) is None
    assert needed_successes(29, 0.9, 0.95) == 29


def test_mean_interval_by_hand():
    """1, 2, 3, 4: mean 2.5, variance 5/3, so that half of it is 1.959964 · √(5/3) / 2."""
    half = 1.959964 * math.sqrt(5 / 3) / 2
    assert mean_interval(np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx((2.5 - half, 2.5 + half), abs=1e-5)


def test_one_value_says_nothing_about_its_spread():
    assert mean_interval(np.array([3.0])) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda: lower_bound(11, 10), "given 11 of 10"),
        (lambda: lower_bound(-1, 10), "given -1 of 10"),
        (lambda: lower_bound(0, 0), "given 0 of 0"),
        (lambda: lower_bound(5, 10, 1.0), "between 0 and 1; given 1"),
        (lambda: mean_interval(np.zeros(3), 0.0), "between 0 and 1; given 0"),
        (lambda: needed_successes(10, 0.9, 95.0), "between 0 and 1; given 95"),
    ],
)
def test_what_has_no_bound_is_refused(function, said):
    with pytest.raises(UserError, match=said):
        function()
