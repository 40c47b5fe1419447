"""The recurrent encoder is the paper's, and its two ways to read a history agree."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.networks import RecurrentEncoder
from icmape.problem import Features
from tests.support import drawn, step, unroll

FEATURES, WIDTH, ROUNDS = 3, 5, 7


def large(encoder: RecurrentEncoder) -> RecurrentEncoder:
    """The same with queries so large that pooling scores pass their limit."""
    return eqx.tree_at(lambda e: e.query_in, encoder, encoder.query_in * 500)


@pytest.fixture(scope="module", params=["paper", "paper+last"])
def encoder(request) -> RecurrentEncoder:
    return drawn(lambda: RecurrentEncoder(FEATURES, WIDTH, request.param, key=jax.random.key(2)))


@pytest.fixture(scope="module")
def tokens() -> jnp.ndarray:
    return jnp.asarray(2 * np.random.default_rng(3).standard_normal((ROUNDS, FEATURES)), jnp.float32)


def numpy_summaries(encoder: RecurrentEncoder, tokens: np.ndarray) -> np.ndarray:
    """The paper's formulas, one prefix at a time, with the softmax over the past as a masked softmax."""
    p = jax.tree.map(lambda x: np.asarray(x, np.float64), encoder)

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    hidden, cell, states = np.zeros(WIDTH), np.zeros(WIDTH), []
    for token in tokens:
        embedded = gelu(p.embedding.weight @ token + p.embedding.bias)
        gates = p.lstm.weight_ih @ embedded + p.lstm.weight_hh @ hidden + p.lstm.bias
        enter, forget, content, leave = np.split(gates, 4)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(content)
        hidden = sigmoid(leave) * np.tanh(cell)
        states.append(hidden)
    states = np.stack(states)
    scores = np.array([p.query_in @ (p.key_projection.weight @ h) for h in states]) / np.sqrt(WIDTH)
    gate = sigmoid(p.gate.weight @ p.query_out)
    out = []
    for t in range(len(tokens)):
        masked = np.where(np.arange(len(tokens)) <= t, scores, -np.inf)
        weights = np.exp(masked - masked.max())
        pooled = (weights / weights.sum()) @ states
        last = [] if encoder.kind == "paper" else [states[t]]
        out.append(np.concatenate([pooled * gate, *last]))
    return np.stack(out)


def test_unroll_is_the_papers_formulas(encoder, tokens):
    expected = numpy_summaries(encoder, np.asarray(tokens, np.float64))
    np.testing.assert_allclose(unroll(encoder, Features(tokens)), expected, atol=2e-6)


@pytest.mark.parametrize("change", [lambda e: e, large], ids=["plain", "scores at their limit"])
def test_step_is_unroll_at_every_prefix(encoder, tokens, change):
    encoder = change(encoder)
    state, found = encoder.start(), []
    for token in tokens:
        state, summary = step(encoder, state, Features(token))
        found.append(summary)
    np.testing.assert_allclose(jnp.stack(found), unroll(encoder, Features(tokens)), atol=2e-6)


def test_what_comes_later_does_not_change_earlier_summaries(encoder, tokens):
    short = unroll(encoder, Features(tokens))[:4]
    for padding in (jnp.zeros((3, FEATURES)), 50.0 * jnp.ones((3, FEATURES))):
        padded = unroll(encoder, Features(jnp.concatenate([tokens[:4], padding])))
        np.testing.assert_allclose(padded[:4], short, atol=1e-6)
        assert not np.allclose(padded[4:], np.broadcast_to(short[-1], padded[4:].shape), atol=1e-3)


def test_a_summary_reads_the_whole_past(encoder, tokens):
    """The first token still moves the last summary."""
    gradient = jax.jit(jax.grad(lambda t: jnp.sum(encoder.unroll(Features(t))[-1] ** 2)))(tokens)
    assert np.all(np.abs(gradient).max(axis=1) > 1e-6)


def test_summaries_have_the_width_they_say(encoder, tokens):
    assert encoder.width == WIDTH
    assert encoder.size == {"paper": WIDTH, "paper+last": 2 * WIDTH}[encoder.kind]
    assert unroll(encoder, Features(tokens)).shape == (ROUNDS, encoder.size)


def test_extreme_scores_stay_finite(encoder, tokens):
    """Pooling scores are clipped, so sums of their exponentials cannot overflow."""
    assert np.all(np.isfinite(unroll(large(encoder), Features(1e3 * tokens))))


FRESH = jnp.array([True, False, True, True, False, False, True])


def test_rounds_without_anything_new_are_skipped(encoder, tokens) -> None:
    """Summaries are those of the fresh tokens alone, and a skipped round repeats the last one; step agrees."""
    views = Features(tokens, None, FRESH)
    skipping = np.asarray(unroll(encoder, views))
    fresh_only = np.asarray(unroll(encoder, Features(tokens[np.flatnonzero(FRESH)])))
    np.testing.assert_allclose(skipping, fresh_only[np.cumsum(FRESH) - 1], atol=1e-6)
    state = encoder.start()
    for number in range(ROUNDS):
        state, summary = step(encoder, state, jax.tree.map(lambda x, n=number: x[n], views))
        np.testing.assert_allclose(summary, skipping[number], atol=1e-5)


def test_skipped_tokens_have_no_gradient(encoder, tokens) -> None:
    gradient = jax.grad(lambda t: jnp.sum(encoder.unroll(Features(t, None, FRESH)) ** 2))(tokens)
    np.testing.assert_array_equal(np.any(gradient != 0, axis=1), FRESH)
