"""Credible sets hold the truth as often as they say, if the posterior they come from is right."""

import itertools

import numpy as np
import pytest

from icmape import Categorical, Factored, TopK
from icmape.evaluation.coverage import coverage

DRAWS = 1500


def test_coverage_and_size_by_hand():
    """Sets for 0.6 are {0}, {0}, {0, 1} and {2}; for 0.95 all three answers but for the second, where it is {0, 1}."""
    chances = np.array([[0.7, 0.2, 0.1], [0.9, 0.05, 0.05], [0.35, 0.35, 0.3], [0.1, 0.1, 0.8]])
    found = coverage(Categorical(3), np.log(chances), np.array([0, 1, 1, 2]), [0.6, 0.95])
    assert found == ((0.6, 0.75, 1.25, 4), (0.95, 1.0, 2.75, 4))


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_truths_drawn_from_the_posterior_are_covered(level):
    """1,500 truths; sets are as small as can be, but hold at least the level: 5 standard errors below it,
    false alarm below 3e-7.
    """
    chance = np.random.default_rng(0)
    scores = chance.normal(scale=2.0, size=(DRAWS, 2, 3))
    rows = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    truths = (chance.uniform(size=(DRAWS, 2, 1)) > rows.cumsum(axis=2)).sum(axis=2)
    found = coverage(Factored(2, 3), scores, truths, [level])[0]
    slack = 5 * np.sqrt(level * (1 - level) / DRAWS)
    assert found.covered >= level - slack
    assert found.size < 9
    overconfident = coverage(Factored(2, 3), 3 * scores, truths, [level])[0]
    assert overconfident.covered < level - slack


def test_independent_members_are_covered():
    """Cells that are members independently of each other, as many as there happen to be: for top-k sets hold by that
    account. 5 standard errors: false alarm below 3e-7.
    """
    chance = np.random.default_rng(1)
    scores = chance.normal(size=(DRAWS, 5))
    members = chance.uniform(size=(DRAWS, 5)) < 1 / (1 + np.exp(-scores))
    found = [
        coverage(TopK(5, 2), scores[i : i + 1], np.flatnonzero(members[i])[None], [0.7])[0].covered
        for i in range(DRAWS)
    ]
    assert np.mean(found) >= 0.7 - 5 * np.sqrt(0.21 / DRAWS)


def test_every_answer_together_always_holds_the_truth():
    truths = np.array(list(itertools.product(range(2), repeat=2)))
    found = coverage(Factored(2, 2), np.zeros((4, 2, 2)), truths, [0.99])[0]
    assert (found.covered, found.size) == (1.0, 4.0)
