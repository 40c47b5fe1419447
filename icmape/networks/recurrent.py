"""The recurrent encoder with conditioned temporal pooling (the paper's appendix).

A history is embedded (linear, GELU), read by an LSTM and pooled by a softmax over all rounds so far, whose weights come
from a learned query. The softmax is a ratio of two running sums, so a step needs constant memory, and unrolling gives
the summary of every prefix in one pass.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from icmape.networks.encoder import TokenEncoder
from icmape.networks.lstm import Weights, lstm_step, unroll_lstm

SCORE_LIMIT = 10.0  # pooling scores are clipped here, so that the sums need no running maximum


class EncoderState(NamedTuple):
    """The state of the encoder: that of the LSTM, and the sums of the pooling."""

    hidden: Float[Array, "width"]
    cell: Float[Array, "width"]
    weighted: Float[Array, "width"]  # Σ exp(score_s) h_s
    weight: Float[Array, ""]  # Σ exp(score_s)


class RecurrentEncoder(TokenEncoder):
    """Maps tokens to one summary per prefix."""

    embedding: eqx.nn.Linear
    lstm: eqx.nn.LSTMCell
    query_in: Float[Array, "width"]
    key_projection: eqx.nn.Linear
    query_out: Float[Array, "width"]
    gate: eqx.nn.Linear
    kind: str = eqx.field(static=True)

    def __init__(self, features: int, width: int, kind: str, *, key: Key[Array, ""]):
        keys = jax.random.split(key, 6)
        self.embedding = eqx.nn.Linear(features, width, key=keys[0])
        self.lstm = eqx.nn.LSTMCell(width, width, key=keys[1])
        self.query_in = jax.random.normal(keys[2], (width,))
        self.key_projection = eqx.nn.Linear(width, width, use_bias=False, key=keys[3])
        self.query_out = jax.random.normal(keys[4], (width,))
        self.gate = eqx.nn.Linear(width, width, use_bias=False, key=keys[5])
        self.kind = kind

    @property
    def width(self) -> int:
        """Size of the LSTM."""
        return self.lstm.hidden_size

    @property
    def size(self) -> int:
        """Size of a summary."""
        return self.width if self.kind == "paper" else 2 * self.width

    def start(self) -> EncoderState:
        """The state before the first token."""
        zeros = jnp.zeros(self.width)
        return EncoderState(zeros, zeros, zeros, jnp.zeros(()))

    def step_token(
        self, state: EncoderState, token: Float[Array, "features"]
    ) -> tuple[EncoderState, Float[Array, "summary"]]:
        """The summary after one more token."""
        hidden, cell = lstm_step(self._weights, (state.hidden, state.cell), self._embed(token))
        weight = self._weight(hidden)
        state = EncoderState(hidden, cell, state.weighted + weight * hidden, state.weight + weight)
        return state, self.summary(state)

    def summary(self, state: EncoderState) -> Float[Array, "summary"]:
        """The summary of a state."""
        return self._summary(state.weighted / state.weight, state.hidden)

    def unroll_tokens(self, tokens: Float[Array, "rounds features"]) -> Float[Array, "rounds summary"]:
        """The summaries of all prefixes of a history."""
        hidden = unroll_lstm(self._weights, jax.vmap(self._embed)(tokens))
        weight = jax.vmap(self._weight)(hidden)[:, None]
        past = jnp.tri(tokens.shape[0])  # prefix sums as a product: many times faster than cumsum on a CPU
        pooled = (past @ (weight * hidden)) / (past @ weight)
        return jax.vmap(self._summary)(pooled, hidden)

    def _embed(self, token: Float[Array, "features"]) -> Float[Array, "width"]:
        return jax.nn.gelu(self.embedding(token))

    @property
    def _weights(self) -> Weights:
        bias = self.lstm.bias
        assert bias is not None  # the cell is built with one
        return self.lstm.weight_ih, self.lstm.weight_hh, bias

    def _weight(self, hidden: Float[Array, "width"]) -> Float[Array, ""]:
        score = (self.query_in @ self.key_projection.weight) @ hidden / math.sqrt(self.width)  # ⟨q, W h⟩/√d
        return jnp.exp(jnp.clip(score, -SCORE_LIMIT, SCORE_LIMIT))

    def _summary(self, pooled: Float[Array, "width"], last: Float[Array, "width"]) -> Float[Array, "summary"]:
        gated = pooled * jax.nn.sigmoid(self.gate(self.query_out))
        return gated if self.kind == "paper" else jnp.concatenate([gated, last])
