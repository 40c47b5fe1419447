"""Answers in the order of their probability, the smallest sets of them, and how far two posteriors are apart."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from icmape import Categorical, Factored, TopK, UserError
from icmape.problem.credible import credible_set
from icmape_agent.answers import MOST_ANSWERS

ROWS = np.array([[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]])
MEMBERS = np.array([0.5, 0.2, 0.8])


def logit(chances: np.ndarray) -> np.ndarray:
    return np.log(chances / (1 - chances))


def test_answers_of_one_part_by_their_probability():
    answers, adds = Categorical(3).ranked(np.log(ROWS[0]) + 7.0)
    np.testing.assert_array_equal(answers, [1, 2, 0])
    np.testing.assert_allclose(adds, [0.5, 0.3, 0.2])


def test_answers_of_several_parts_are_all_combinations_by_their_products():
    answers, adds = Factored(2, 3).ranked(np.log(ROWS) - 2.0)
    every = {(a, b): ROWS[0, a] * ROWS[1, b] for a, b in itertools.product(range(3), repeat=2)}
    assert {tuple(map(int, row)) for row in answers} == set(every)
    np.testing.assert_allclose(adds, [every[tuple(map(int, row))] for row in answers])
    assert list(adds) == sorted(adds, reverse=True)
    assert adds.sum() == pytest.approx(1.0)


def test_cells_add_what_is_left_if_memberships_are_independent():
    """0.8, then 0.5 of the other 0.2, then 0.2 of the other 0.1."""
    answers, adds = TopK(3, 1).ranked(logit(MEMBERS))
    np.testing.assert_array_equal(answers, [2, 0, 1])
    np.testing.assert_allclose(adds, [0.8, 0.1, 0.02])
    outcomes = itertools.product((False, True), repeat=3)
    some = sum(np.prod(np.where(row, MEMBERS, 1 - MEMBERS)) for row in outcomes if any(row))
    assert adds.sum() == pytest.approx(some), "by all eight outcomes"


def test_a_cell_that_is_surely_not_a_member_does_not_overflow():
    _, adds = TopK(2, 1).ranked(np.array([0.0, -600.0], np.float32))
    np.testing.assert_allclose(adds, [0.5, 0.0], atol=1e-12)


def test_too_many_answers_are_not_listed():
    space = Factored(20, 5)
    with pytest.raises(UserError, match=rf"5\^20 answers are too many .*{MOST_ANSWERS:,}"):
        space.ranked(np.zeros((20, 5)))


def test_a_right_answer_is_found_among_several():
    assert Categorical(3).among(np.array([1, 2]), np.int8(2))
    assert not Categorical(3).among(np.array([1, 2]), np.int8(0))
    pairs = np.array([[0, 1], [2, 2]])
    assert Factored(2, 3).among(pairs, np.array([2, 2], np.int8))
    assert not Factored(2, 3).among(pairs, np.array([0, 2], np.int8)), "right part by part, but not together"
    assert TopK(9, 2).among(np.array([4, 5]), np.array([8, 5], np.int16))
    assert not TopK(9, 2).among(np.array([4, 5]), np.array([8, 6], np.int16))


@pytest.mark.parametrize(("level", "size", "reached"), [(0.3, 1, 0.5), (0.5, 1, 0.5), (0.51, 2, 0.8), (0.99, 3, 1.0)])
def test_the_set_ends_with_the_answer_that_reaches_the_level(level, size, reached):
    found = credible_set(Categorical(3), np.log(ROWS[0]), level)
    assert len(found.answers) == size
    assert found.probability == pytest.approx(reached)


@pytest.mark.parametrize("seed", range(5))
def test_no_smaller_set_reaches_the_level(seed):
    """Brute force over all sets of the nine answers of two parts."""
    scores = np.random.default_rng(seed).normal(size=(2, 3))
    rows = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    chances = [a * b for a, b in itertools.product(*rows)]
    found = credible_set(Factored(2, 3), scores, 0.9)
    fewest = next(n for n in range(1, 10) if any(sum(s) >= 0.9 for s in itertools.combinations(chances, n)))
    assert len(found.answers) == fewest
    assert found.probability == pytest.approx(sum(rows[0, a] * rows[1, b] for a, b in found.answers))


def test_where_no_set_reaches_the_level_all_cells_are_in_it():
    found = credible_set(TopK(3, 1), logit(MEMBERS), 0.95)
    assert len(found.answers) == 3
    assert found.probability == pytest.approx(0.92)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_is_a_probability(level):
    with pytest.raises(UserError, match="between 0 and 1"):
        credible_set(Categorical(2), np.zeros(2), level)


def test_divergence_of_two_posteriors_is_the_direct_sum():
    """Σ p log(p / q) over the answers; over all combinations where there are parts."""
    p, q = ROWS
    assert float(Categorical(3).divergence(_scores(p), _scores(q))) == pytest.approx(np.sum(p * np.log(p / q)), 1e-5)
    pairs = np.array([[0.1, 0.9], [0.6, 0.4]]), np.array([[0.3, 0.7], [0.5, 0.5]])
    whole = [np.multiply.outer(*rows).ravel() for rows in pairs]
    expected = np.sum(whole[0] * np.log(whole[0] / whole[1]))
    assert float(Factored(2, 2).divergence(*map(_scores, pairs))) == pytest.approx(expected, 1e-5)


def test_divergence_of_memberships_sums_over_all_outcomes():
    others = np.array([0.4, 0.3, 0.6])
    expected = 0.0
    for row in itertools.product((False, True), repeat=3):
        p, q = (np.prod(np.where(row, chances, 1 - chances)) for chances in (MEMBERS, others))
        expected += p * np.log(p / q)
    scores = (jnp.asarray(logit(chances), jnp.float32) for chances in (MEMBERS, others))
    assert float(TopK(3, 1).divergence(*scores)) == pytest.approx(expected, 1e-5)


@pytest.mark.parametrize("space", [Categorical(4), Factored(2, 3), TopK(4, 2)])
def test_equal_posteriors_are_not_apart(space):
    """Also where some answers are impossible, in logs."""
    scores = np.random.default_rng(0).normal(size=space.shape).astype(np.float32)
    assert float(space.divergence(jnp.asarray(scores), jnp.asarray(scores))) == pytest.approx(0.0, abs=1e-6)
    scores.flat[0] = -jnp.inf if isinstance(space, Categorical | Factored) else -100.0
    assert float(space.divergence(jnp.asarray(scores), jnp.asarray(scores))) == pytest.approx(0.0, abs=1e-6)


def _scores(chances: np.ndarray) -> jnp.ndarray:
    return jnp.asarray(np.log(chances) + 1.5, jnp.float32)
