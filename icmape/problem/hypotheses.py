"""Hypothesis spaces: what an answer is, how sure we are of it, and when it is right.

An inference returns *scores* of `space.shape`; everything else follows from the space alone, so that losses, confidence
and metrics are written once for every problem.
"""

from abc import abstractmethod
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer

from icmape.errors import UserError

MOST_ANSWERS = 100_000  # that are listed one by one
LEAST_LOG = -80.0  # of a probability that counts


class HypothesisSpace(eqx.Module):
    """A finite set of possible answers."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the scores that an inference returns."""

    @abstractmethod
    def log_probabilities(self, scores: Float[Array, "..."]) -> Float[Array, "..."]:
        """Scores made into log-probabilities."""

    @abstractmethod
    def log_likelihood(self, scores: Float[Array, "..."], truth: Integer[Array, "..."]) -> Float[Array, ""]:
        """Log-probability of the true hypothesis H*."""

    def log_truth(self, scores: Float[Array, "..."], truth: Integer[Array, "..."]) -> Float[Array, ""]:
        """How much the scores make of what is true, in logs: a team may be rewarded for it while it learns."""
        return self.log_likelihood(scores, truth)

    @abstractmethod
    def confidence(self, scores: Float[Array, "..."]) -> Float[Array, ""]:
        """r_t: the probability that the decision is right, by the scores' own account."""

    @abstractmethod
    def decide(self, scores: Float[Array, "..."]) -> Int[Array, "..."]:
        """The most probable answer."""

    @abstractmethod
    def correct(self, decision: Int[Array, "..."], truth: Integer[Array, "..."]) -> Bool[Array, ""]:
        """Whether the decision counts as right."""

    @abstractmethod
    def best_constant(self, truths: Integer[Array, "worlds ..."]) -> Int[Array, "..."]:
        """The one decision that is right most often over these worlds: the answer without any data."""

    def divergence(self, scores: Float[Array, "..."], others: Float[Array, "..."]) -> Float[Array, ""]:
        """Kullback-Leibler divergence of another posterior from this one, in nats; 0 where they agree."""
        return _divergence(self.log_probabilities(scores), self.log_probabilities(others))

    def ranked(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Answers, most probable first, and what each adds to the probability that a right one is among them."""
        raise UserError(f"the answers of {type(self).__name__} cannot be listed: it has no `ranked`")

    def among(self, answers: np.ndarray, truth: np.ndarray) -> bool:
        """Whether a right answer is among several."""
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
        """Softmax, in logs."""
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
        """Equal to the truth."""
        return decision == truth.astype(decision.dtype)

    def best_constant(self, truths: Integer[Array, "worlds"]) -> Int[Array, ""]:
        """The most frequent truth."""
        return jnp.argmax(jnp.bincount(truths, length=self.size))

    def ranked(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By their probability."""
        chances = np.exp(_log_softmax(scores))
        order = np.argsort(-chances, kind="stable")
        return order, chances[order]

    def among(self, answers: np.ndarray, truth: np.ndarray | np.integer) -> bool:
        """Equal to one of them."""
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
        """Softmax of every part, in logs."""
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
        """Right in every part."""
        return jnp.all(decision == truth.astype(decision.dtype))

    def best_constant(self, truths: Integer[Array, "worlds parts"]) -> Int[Array, "parts"]:
        """The most frequent whole answer (the parts need not be independent in the worlds at hand)."""
        rows, counts = np.unique(np.asarray(truths), axis=0, return_counts=True)
        return jnp.asarray(rows[np.argmax(counts)], jnp.int32)

    def ranked(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whole answers by their probability, which is a product over parts."""
        if self.values**self.parts > MOST_ANSWERS:
            raise UserError(f"{self.values}^{self.parts} answers are too many to be listed (at most {MOST_ANSWERS:,})")
        answers = _combinations(self.parts, self.values)
        chances = np.exp(_log_softmax(scores)[np.arange(self.parts), answers].sum(axis=1))
        order = np.argsort(-chances, kind="stable")
        return answers[order], chances[order]

    def among(self, answers: np.ndarray, truth: np.ndarray) -> bool:
        """Equal to one of them in every part."""
        return bool(np.any(np.all(answers == truth, axis=1)))


class TopK(HypothesisSpace):
    """Any one of the k true cells will do; every cell has its own probability of being among them."""

    cells: int = eqx.field(static=True)
    k: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """One score per cell."""
        return (self.cells,)

    def log_probabilities(self, scores: Float[Array, "..."]) -> Float[Array, "..."]:
        """Log-sigmoid of every cell: its scores are log-odds, and a cell says nothing about the others."""
        return jax.nn.log_sigmoid(scores)

    def log_likelihood(self, scores: Float[Array, "..."], truth: Integer[Array, "k"]) -> Float[Array, ""]:
        """Log-probability of the membership of every cell (binary cross-entropy, summed)."""
        member = jnp.zeros(self.cells, bool).at[truth].set(True)
        return jnp.sum(jnp.where(member, jax.nn.log_sigmoid(scores), jax.nn.log_sigmoid(-scores)))

    def log_truth(self, scores: Float[Array, "..."], truth: Integer[Array, "k"]) -> Float[Array, ""]:
        """Mean over the true cells: the others, of which there are many more, say little."""
        return jnp.mean(jax.nn.log_sigmoid(scores)[truth])

    def confidence(self, scores: Float[Array, "..."]) -> Float[Array, ""]:
        """Largest probability of membership."""
        return jax.nn.sigmoid(jnp.max(scores))

    def decide(self, scores: Float[Array, "..."]) -> Int[Array, ""]:
        """The cell most likely to be among the true ones."""
        return jnp.argmax(scores)

    def correct(self, decision: Int[Array, ""], truth: Integer[Array, "k"]) -> Bool[Array, ""]:
        """The cell is among the true ones."""
        return jnp.any(decision == truth.astype(decision.dtype))

    def best_constant(self, truths: Integer[Array, "worlds k"]) -> Int[Array, ""]:
        """The cell most often among the true ones."""
        return jnp.argmax(jnp.bincount(truths.reshape(-1), length=self.cells))

    def divergence(self, scores: Float[Array, "..."], others: Float[Array, "..."]) -> Float[Array, ""]:
        """Summed over the memberships of all cells."""
        yes, no = jax.nn.log_sigmoid, lambda x: jax.nn.log_sigmoid(-x)
        return _divergence(yes(scores), yes(others)) + _divergence(no(scores), no(others))

    def ranked(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cells by their probability. What one adds is computed as if memberships were independent."""
        chances = 1 / (1 + np.exp(-np.asarray(scores, np.float64)))
        order = np.argsort(-chances, kind="stable")
        none_before = np.concatenate([[1.0], np.cumprod(1 - chances[order])[:-1]])
        return order, chances[order] * none_before

    def among(self, answers: np.ndarray, truth: np.ndarray) -> bool:
        """One of them is a true cell."""
        return bool(np.isin(answers, truth).any())


def _log_softmax(scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, np.float64)
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@cache
def _combinations(parts: int, values: int) -> np.ndarray:
    """All whole answers (answers, parts)."""
    return np.indices((values,) * parts).reshape(parts, -1).T
