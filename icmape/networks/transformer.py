"""A causal transformer as encoder of histories, as in in-context learning (ICPE).

Pre-norm layers of attention and a two-layer network. A step keeps keys and values of all rounds so far in arrays with a
row for each round, so its cost does not grow; `unroll` reads all prefixes in one pass under a causal mask.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from icmape.networks.encoder import TokenEncoder

LAYERS = 2
HEADS = 4
WIDER = 2  # of the hidden layer of a block
MASKED = -1e9


class Memory(NamedTuple):
    """Keys and values of the tokens so far; later rows are 0."""

    keys: Float[Array, "layers rounds width"]
    values: Float[Array, "layers rounds width"]
    length: Int[Array, ""]
    summary: Float[Array, "width"]  # after the last token


class Block(eqx.Module):
    """Attention, then two layers, each added to its input."""

    norm_in: eqx.nn.LayerNorm
    query: eqx.nn.Linear
    key: eqx.nn.Linear
    value: eqx.nn.Linear
    mixed: eqx.nn.Linear
    norm_out: eqx.nn.LayerNorm
    hidden: eqx.nn.Linear
    output: eqx.nn.Linear
    heads: int = eqx.field(static=True)

    def __init__(self, width: int, heads: int, *, key: Key[Array, ""]):
        keys = jax.random.split(key, 6)
        self.norm_in, self.norm_out = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
        self.query, self.key, self.value, self.mixed = (
            eqx.nn.Linear(width, width, use_bias=False, key=k) for k in keys[:4]
        )
        self.hidden = eqx.nn.Linear(width, WIDER * width, key=keys[4])
        self.output = eqx.nn.Linear(WIDER * width, width, key=keys[5])
        self.heads = heads

    def read(self, x: Float[Array, "width"]) -> tuple[Float[Array, "width"], Float[Array, "width"]]:
        """Key and value of a token."""
        normed = self.norm_in(x)
        return self.key(normed), self.value(normed)

    def __call__(
        self,
        x: Float[Array, "width"],
        keys: Float[Array, "rounds width"],
        values: Float[Array, "rounds width"],
        seen: Bool[Array, "rounds"],
    ) -> Float[Array, "width"]:
        """A token after attending to those that are seen."""
        rounds, width = keys.shape
        each = width // self.heads
        query = self.query(self.norm_in(x)).reshape(self.heads, each)
        scores = jnp.einsum("hd,rhd->hr", query, keys.reshape(rounds, self.heads, each)) / math.sqrt(each)
        weights = jax.nn.softmax(jnp.where(seen[None], scores, MASKED), axis=-1)
        pooled = jnp.einsum("hr,rhd->hd", weights, values.reshape(rounds, self.heads, each))
        x = x + self.mixed(pooled.reshape(width))
        return x + self.output(jax.nn.gelu(self.hidden(self.norm_out(x))))


class TransformerEncoder(TokenEncoder):
    """Maps tokens to one summary per prefix: the last token after all layers."""

    embedding: eqx.nn.Linear
    positions: Float[Array, "rounds width"]
    blocks: tuple[Block, ...]
    norm: eqx.nn.LayerNorm
    kind: str = eqx.field(static=True)

    def __init__(self, features: int, width: int, kind: str, rounds: int, *, key: Key[Array, ""]):
        for_embedding, for_positions, *for_blocks = jax.random.split(key, 2 + LAYERS)
        self.embedding = eqx.nn.Linear(features, width, key=for_embedding)
        self.positions = 0.02 * jax.random.normal(for_positions, (rounds, width))
        heads = math.gcd(HEADS, width)
        self.blocks = tuple(Block(width, heads, key=k) for k in for_blocks)
        self.norm = eqx.nn.LayerNorm(width)
        self.kind = kind

    @property
    def width(self) -> int:
        """Width of the layers."""
        return self.positions.shape[1]

    @property
    def size(self) -> int:
        """Size of a summary."""
        return self.width

    def start(self) -> Memory:
        """The state before the first token."""
        empty = jnp.zeros((len(self.blocks), *self.positions.shape))
        return Memory(empty, empty, jnp.int32(0), jnp.zeros(self.width))

    def step_token(self, state: Memory, token: Float[Array, "features"]) -> tuple[Memory, Float[Array, "summary"]]:
        """The summary after one more token."""
        seen = jnp.arange(self.positions.shape[0]) <= state.length
        x = self.embedding(token) + self.positions[state.length]
        keys, values = state.keys, state.values
        for layer, block in enumerate(self.blocks):
            key, value = block.read(x)
            keys, values = keys.at[layer, state.length].set(key), values.at[layer, state.length].set(value)
            x = block(x, keys[layer], values[layer], seen)
        state = Memory(keys, values, state.length + 1, self.norm(x))
        return state, state.summary

    def summary(self, state: Memory) -> Float[Array, "summary"]:
        """The summary of a state."""
        return state.summary

    def unroll_tokens(self, tokens: Float[Array, "rounds features"]) -> Float[Array, "rounds summary"]:
        """The summaries of all prefixes of a history."""
        rounds = tokens.shape[0]
        past = jnp.tri(rounds) > 0
        x = jax.vmap(self.embedding)(tokens) + self.positions[:rounds]
        for block in self.blocks:
            keys, values = jax.vmap(block.read)(x)
            x = jax.vmap(block, in_axes=(0, None, None, 0))(x, keys, values, past)
        return jax.vmap(self.norm)(x)
