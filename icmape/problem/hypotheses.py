"""Hypothesis spaces: what an answer is, its probability, and when it is right.

An inference returns *scores* of `space.shape`. The space defines losses, confidence and metrics from the scores, in the
same way for every problem.
"""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer

from icmape.errors import UserError
from icmape_agent.answers import ranked_categories, ranked_cells, ranked_combinations

LEAST_LOG = -80.0  # smaller log-probabilities are ignored in divergences


class HypothesisSpace(eqx.Module):
    """A finite set of possible answers."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the scores that an inference returns."""

    @abstractmethod
    def log_probabilities(self, scores: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log-probabilities from scores."""

    @abstractmethod
    def log_likelihood(self, scores: Float[Array, "..."], truth: Integer[Array, "..."]) -> Float[Array, ""]:
        """Log-probability of the true hypothesis H*."""

    def log_truth(self, scores: Float[Array, "..."], truth: Integer[Array, "..."]) -> Float[Array, ""]:
        """Log-probability of the truth, for reward shaping in training."""
        return self.log_likelihood(scores, truth)

    @abstractmethod
    def confidence(self, scores: Float[Array, "..."]) -> Float[Array, ""]:
        """r_t: the posterior probability that the decision is right."""

    @abstractmethod
    def decide(self, scores: Float[Array, "..."]) -> Int[Array, "..."]:
        """The most probable answer."""

    @abstractmethod
    def correct(self, decision: Int[Array, "..."], truth: Integer[Array, "..."]) -> Bool[Array, ""]:
        """Whether the decision is right."""

    @abstractmethod
    def best_constant(self, truths: Integer[Array, "worlds ..."]) -> Int[Array, "..."]:
        """The constant decision that is right most often in these worlds: the best answer without data."""

    def divergence(self, scores: Float[Array, "..."], others: Float[Array, "..."]) -> Float[Array, ""]:
        """Kullback-Leibler divergence of another posterior from this one, in nats; 0 where they agree."""
        return _divergence(self.log_probabilities(scores), self.log_probabilities(others))

    def ranked(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Answers, most probable first, and the probability that each adds to a credible set."""
        raise UserError(f"the answers of {type(self).__name__} cannot be listed: it has no `ranked`")

    def among(self, answers: np.ndarray, truth: np.ndarray) -> bool:
        """Whether a set of answers contains a right one."""
        raise UserError(f"the answers of {type(self).__name__} cannot be listed: it has no `among`")


def _divergence(logs: Float[Array, "..."], others: Float[Array, "..."]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(logs > LEAST_LOG, jnp.exp(logs) * (logs - others), 0.0))


class Categorical(HypothesisSpace):
    """One of n answers."""

    size: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """One score per answer."""
        return (self.size,)

    def log_probabilities(self, scores: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log-softmax."""
        return jax.nn.log_softmax(scores)

    def log_likelihood(self, scores: Float[Array, "..."], truth: Integer[Array, ""]) -> Float[Array, ""]:
        """Log-probability of the true answer."""
        return self.log_probabilities(scores)[truth]

    def confidence(self, scores: Float[Array, "..."]) -> Float[Array, ""]:
        """Probability of the most probable answer."""
        return jnp.exp(jnp.max(self.log_probabilities(scores)))

    def decide(self, scores: Float[Array, "..."]) -> Int[Array, ""]:
        """The most probable answer."""
        return jnp.argmax(scores)

    def correct(self, decision: Int[Array, ""], truth: Integer[Array, ""]) -> Bool[Array, ""]:
        """Whether the decision equals the truth."""
        return decision == truth.astype(decision.dtype)

    def best_constant(self, truths: Integer[Array, "worlds"]) -> Int[Array, ""]:
        """The most frequent truth."""
        return jnp.argmax(jnp.bincount(truths, length=self.size))

    def ranked(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Answers sorted by probability."""
        return ranked_categories(scores)

    def among(self, answers: np.ndarray, truth: np.ndarray | np.integer) -> bool:
        """Whether one of the answers equals the truth."""
        return bool(np.any(answers == truth))


class Factored(HypothesisSpace):
    """Several independent parts, each one of n values; the answer is right when every part is."""

    parts: int = eqx.field(static=True)
    values: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """One row of scores per part."""
        return (self.parts, self.values)

    def log_probabilities(self, scores: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log-softmax of every part."""
        return jax.nn.log_softmax(scores, axis=-1)

    def log_likelihood(self, scores: Float[Array, "..."], truth: Integer[Array, "parts"]) -> Float[Array, ""]:
        """Sum over parts: the log-probability of the whole answer."""
        rows = self.log_probabilities(scores)
        return jnp.sum(jnp.take_along_axis(rows, truth[:, None].astype(jnp.int32), axis=1))

    def confidence(self, scores: Float[Array, "..."]) -> Float[Array, ""]:
        """Product over parts of the largest probability."""
        return jnp.exp(jnp.sum(jnp.max(self.log_probabilities(scores), axis=-1)))

    def decide(self, scores: Float[Array, "..."]) -> Int[Array, "parts"]:
        """The most probable value of every part."""
        return jnp.argmax(scores, axis=-1)

    def correct(self, decision: Int[Array, "parts"], truth: Integer[Array, "parts"]) -> Bool[Array, ""]:
        """Whether every part is right."""
        return jnp.all(decision == truth.astype(decision.dtype))

    def best_constant(self, truths: Integer[Array, "worlds parts"]) -> Int[Array, "parts"]:
        """The most frequent whole answer (the parts may be dependent in these worlds)."""
        rows, counts = np.unique(np.asarray(truths), axis=0, return_counts=True)
        return jnp.asarray(rows[np.argmax(counts)], jnp.int32)

    def ranked(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whole answers sorted by probability, which is a product over parts."""
        return ranked_combinations(scores)

    def among(self, answers: np.ndarray, truth: np.ndarray) -> bool:
        """Whether one of the answers equals the truth in every part."""
        return bool(np.any(np.all(answers == truth, axis=1)))


class TopK(HypothesisSpace):
    """Each of the k true cells is a right answer; every cell has a probability of being one of them."""

    cells: int = eqx.field(static=True)
    k: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """One score per cell."""
        return (self.cells,)

    def log_probabilities(self, scores: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log-sigmoid of every cell: scores are log-odds, independent across cells."""
        return jax.nn.log_sigmoid(scores)

    def log_likelihood(self, scores: Float[Array, "..."], truth: Integer[Array, "k"]) -> Float[Array, ""]:
        """Log-probability of the membership of every cell (binary cross-entropy, summed)."""
        member = jnp.zeros(self.cells, bool).at[truth].set(True)
        return jnp.sum(jnp.where(member, jax.nn.log_sigmoid(scores), jax.nn.log_sigmoid(-scores)))

    def log_truth(self, scores: Float[Array, "..."], truth: Integer[Array, "k"]) -> Float[Array, ""]:
        """Mean over the true cells. The many other cells carry little information."""
        return jnp.mean(jax.nn.log_sigmoid(scores)[truth])

    def confidence(self, scores: Float[Array, "..."]) -> Float[Array, ""]:
        """Largest probability of membership."""
        return jax.nn.sigmoid(jnp.max(scores))

    def decide(self, scores: Float[Array, "..."]) -> Int[Array, ""]:
        """The cell with the largest probability of membership."""
        return jnp.argmax(scores)

    def correct(self, decision: Int[Array, ""], truth: Integer[Array, "k"]) -> Bool[Array, ""]:
        """Whether the cell is one of the true cells."""
        return jnp.any(decision == truth.astype(decision.dtype))

    def best_constant(self, truths: Integer[Array, "worlds k"]) -> Int[Array, ""]:
        """The cell that is most often a true cell."""
        return jnp.argmax(jnp.bincount(truths.reshape(-1), length=self.cells))

    def divergence(self, scores: Float[Array, "..."], others: Float[Array, "..."]) -> Float[Array, ""]:
        """Summed over the memberships of all cells."""
        yes, no = jax.nn.log_sigmoid, lambda x: jax.nn.log_sigmoid(-x)
        return _divergence(yes(scores), yes(others)) + _divergence(no(scores), no(others))

    def ranked(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cells sorted by probability. Memberships are treated as independent."""
        return ranked_cells(scores)

    def among(self, answers: np.ndarray, truth: np.ndarray) -> bool:
        """Whether one of the answers is a true cell."""
        return bool(np.isin(answers, truth).any())
