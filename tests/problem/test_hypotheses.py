"""Hypothesis spaces, worked out by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from icmape import Categorical, Factored, TopK


def logs(values) -> jnp.ndarray:
    """Scores with these probabilities, shifted: only differences matter to a softmax."""
    return jnp.log(jnp.asarray(values)) + 3.0


class TestCategorical:
    space = Categorical(3)
    scores = logs([0.2, 0.5, 0.3])

    def test_probabilities_ignore_a_common_shift(self):
        np.testing.assert_allclose(jnp.exp(self.space.log_probabilities(self.scores)), [0.2, 0.5, 0.3], rtol=1e-5)

    def test_confidence_is_the_largest_probability(self):
        assert float(self.space.confidence(self.scores)) == pytest.approx(0.5, rel=1e-5)

    def test_decision_is_the_most_probable_answer(self):
        assert int(self.space.decide(self.scores)) == 1

    def test_likelihood_is_the_truths_probability(self):
        assert float(self.space.log_likelihood(self.scores, jnp.int8(2))) == pytest.approx(np.log(0.3), rel=1e-5)

    def test_only_the_truth_is_correct(self):
        assert bool(self.space.correct(jnp.int32(2), jnp.int8(2)))
        assert not bool(self.space.correct(jnp.int32(1), jnp.int8(2)))

    def test_best_constant_is_the_most_frequent_truth(self):
        assert int(self.space.best_constant(jnp.array([0, 2, 1, 2], jnp.int8))) == 2


class TestFactored:
    space = Factored(2, 3)
    scores = logs([[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]])

    def test_rows_are_distributions_of_their_own(self):
        rows = jnp.exp(self.space.log_probabilities(self.scores))
        np.testing.assert_allclose(rows, [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], rtol=1e-5)

    def test_confidence_is_the_product_of_the_parts(self):
        assert float(self.space.confidence(self.scores)) == pytest.approx(0.5 * 0.7, rel=1e-5)

    def test_decision_is_part_by_part(self):
        np.testing.assert_array_equal(self.space.decide(self.scores), [1, 0])

    def test_likelihood_is_the_product_of_the_parts(self):
        found = float(self.space.log_likelihood(self.scores, jnp.array([2, 1], jnp.int8)))
        assert found == pytest.approx(np.log(0.3 * 0.2), rel=1e-5)

    def test_one_wrong_part_is_wrong(self):
        decision = jnp.array([1, 0])
        assert bool(self.space.correct(decision, jnp.array([1, 0], jnp.int8)))
        assert not bool(self.space.correct(decision, jnp.array([1, 2], jnp.int8)))

    def test_best_constant_is_the_most_frequent_whole_answer(self):
        """Part by part the most frequent values are 1 and 0, but (1, 0) was never true."""
        truths = jnp.array([[1, 1], [1, 2], [0, 0], [2, 0], [0, 0], [1, 1], [1, 1]], jnp.int8)
        np.testing.assert_array_equal(self.space.best_constant(truths), [1, 1])


@pytest.mark.parametrize(
    ("space", "scores"), [(Categorical(3), logs([0.2, 0.5, 0.3])), (Factored(2, 2), logs([[0.2, 0.8], [0.6, 0.4]]))]
)
def test_log_probabilities_of_log_probabilities_are_themselves(space, scores):
    once = space.log_probabilities(scores)
    np.testing.assert_allclose(space.log_probabilities(once), once, atol=1e-6)


class TestTopK:
    space = TopK(cells=4, k=2)
    probabilities = np.array([0.9, 0.2, 0.6, 0.1])
    scores = jnp.asarray(np.log(probabilities / (1 - probabilities)), jnp.float32)

    def test_cells_have_probabilities_of_their_own(self):
        np.testing.assert_allclose(jnp.exp(self.space.log_probabilities(self.scores)), self.probabilities, rtol=1e-5)

    def test_confidence_is_the_surest_cells(self):
        assert float(self.space.confidence(self.scores)) == pytest.approx(0.9, rel=1e-5)

    def test_decision_is_the_surest_cell(self):
        assert int(self.space.decide(self.scores)) == 0

    def test_likelihood_counts_members_and_others(self):
        """True cells 0 and 2: 0.9 · (1-0.2) · 0.6 · (1-0.1)."""
        found = float(self.space.log_likelihood(self.scores, jnp.array([2, 0], jnp.int16)))
        assert found == pytest.approx(np.log(0.9 * 0.8 * 0.6 * 0.9), rel=1e-5)

    def test_any_true_cell_is_correct(self):
        truth = jnp.array([3, 1], jnp.int16)
        assert bool(self.space.correct(jnp.int32(1), truth))
        assert bool(self.space.correct(jnp.int32(3), truth))
        assert not bool(self.space.correct(jnp.int32(0), truth))

    def test_best_constant_is_the_cell_most_often_true(self):
        truths = jnp.array([[0, 3], [1, 3], [2, 0], [3, 2]], jnp.int16)
        assert int(self.space.best_constant(truths)) == 3
