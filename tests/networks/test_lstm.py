"""The LSTM's own gradient against automatic differentiation of the plain loop."""

import jax
import jax.numpy as jnp
import pytest

from icmape.networks.lstm import lstm_step, unroll_lstm, unroll_with_own_gradient

ROUNDS, WIDTH, BATCH = 9, 5, 3


@pytest.fixture(name="weights")
def _weights() -> tuple:
    keys = jax.random.split(jax.random.key(0), 3)
    enter, recur = (jax.random.normal(key, (4 * WIDTH, WIDTH)) for key in keys[:2])
    return enter, recur, jax.random.normal(keys[2], (4 * WIDTH,))


@pytest.fixture(name="embedded")
def _embedded() -> jax.Array:
    return jax.random.normal(jax.random.key(1), (BATCH, ROUNDS, WIDTH))


def test_unroll_is_step_after_step(weights: tuple, embedded: jax.Array) -> None:
    state = jnp.zeros(WIDTH), jnp.zeros(WIDTH)
    for row, hidden in zip(embedded[0], unroll_lstm(weights, embedded[0]), strict=True):
        state = lstm_step(weights, state, row)
        assert jnp.allclose(state[0], hidden, atol=1e-6)


def test_own_gradient_is_that_of_the_plain_loop(weights: tuple, embedded: jax.Array) -> None:
    def loss(unroll: object, weights: tuple, embedded: jax.Array) -> jax.Array:
        hidden = jax.vmap(lambda rows: unroll(weights, rows))(embedded)  # type: ignore[operator]
        return jnp.sum(jnp.sin(3.0 * hidden) * jnp.arange(1.0, ROUNDS + 1)[None, :, None])

    def plain(weights: tuple, rows: jax.Array) -> jax.Array:
        def step(state: tuple, row: jax.Array) -> tuple:
            state = lstm_step(weights, state, row)
            return state, state[0]

        return jax.lax.scan(step, (jnp.zeros(WIDTH), jnp.zeros(WIDTH)), rows)[1]

    value, gradient = jax.value_and_grad(loss, argnums=(1, 2))(unroll_with_own_gradient, weights, embedded)
    value_, gradient_ = jax.value_and_grad(loss, argnums=(1, 2))(plain, weights, embedded)
    assert jnp.allclose(value, value_, rtol=1e-5)
    for found, expected in zip(jax.tree.leaves(gradient), jax.tree.leaves(gradient_), strict=True):
        assert float(jnp.max(jnp.abs(expected))) > 1.0
        assert jnp.allclose(found, expected, rtol=1e-4, atol=1e-4)
