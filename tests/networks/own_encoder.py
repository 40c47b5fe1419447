"""An encoder of the user's own: the mean of all tokens so far, through a layer."""

import equinox as eqx
import jax
import jax.numpy as jnp

from icmape.networks import TokenEncoder


class MeanEncoder(TokenEncoder):
    layer: eqx.nn.Linear
    kind: str = eqx.field(static=True)

    def __init__(self, features, width, kind, rounds, *, key):
        self.layer, self.kind = eqx.nn.Linear(features, width, key=key), kind

    @property
    def width(self):
        return self.layer.out_features

    @property
    def size(self):
        return self.width

    def start(self):
        return jnp.zeros(self.width), jnp.zeros(())

    def step_token(self, state, token):
        total, count = state[0] + jax.nn.gelu(self.layer(token)), state[1] + 1.0
        return (total, count), total / count

    def unroll_tokens(self, tokens):
        rows = jax.nn.gelu(jax.vmap(self.layer)(tokens))
        return jnp.cumsum(rows, axis=0) / jnp.arange(1.0, len(rows) + 1.0)[:, None]


def not_an_encoder(*given, **more):
    return 3
