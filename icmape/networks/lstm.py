"""An LSTM over a whole history, with a gradient made for accelerators.

Automatic differentiation of a loop adds up the weights' gradient inside of it, round by round. Here the backward loop
carries only what flows from round to round, and the weights' gradient is one product over all rounds, outside: on a GPU
a third faster. On a CPU the plain loop wins, as its few numbers stay in the cache.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Weights = tuple[Float[Array, "gates width"], Float[Array, "gates width"], Float[Array, "gates"]]
"""Of the input, of the hidden state, and the bias; the gates are enter, forget, content and leave."""


def lstm_step(
    weights: Weights, state: tuple[Float[Array, "width"], Float[Array, "width"]], embedded: Float[Array, "width"]
) -> tuple[Float[Array, "width"], Float[Array, "width"]]:
    """Hidden state and cell after one more round."""
    # The input's product could be one for all rounds, outside the loop: on a CPU that is half as fast.
    enter, recur, bias = weights
    hidden, cell = state
    opens, forgets, content, leaves = jnp.split(enter @ embedded + recur @ hidden + bias, 4)
    cell = jax.nn.sigmoid(forgets) * cell + jax.nn.sigmoid(opens) * jnp.tanh(content)
    return jax.nn.sigmoid(leaves) * jnp.tanh(cell), cell


def unroll_lstm(weights: Weights, embedded: Float[Array, "rounds width"]) -> Float[Array, "rounds width"]:
    """The hidden states of all rounds."""
    if jax.default_backend() == "cpu":
        return _states(weights, embedded)[0]
    return unroll_with_own_gradient(weights, embedded)


def unroll_with_own_gradient(weights: Weights, embedded: Float[Array, "rounds width"]) -> Float[Array, "rounds width"]:
    """The same with the gradient of this module."""
    enter, recur, bias = weights
    hidden, cells = jax.lax.stop_gradient(_states(weights, embedded))
    gates = embedded @ enter.T + _before(hidden) @ recur.T + bias[None]
    return _attach(gates, hidden, cells, recur)


def _states(
    weights: Weights, embedded: Float[Array, "rounds width"]
) -> tuple[Float[Array, "rounds width"], Float[Array, "rounds width"]]:
    def step(state: tuple, row: Float[Array, "width"]) -> tuple:
        state = lstm_step(weights, state, row)
        return state, state

    nothing = jnp.zeros(weights[1].shape[1])
    return jax.lax.scan(step, (nothing, nothing), embedded)[1]


@jax.custom_vjp
def _attach(
    gates: Float[Array, "rounds gates"],
    hidden: Float[Array, "rounds width"],
    cells: Float[Array, "rounds width"],
    recur: Float[Array, "gates width"],
) -> Float[Array, "rounds width"]:
    """The hidden states as a function of the gates, each with all that it leads to in later rounds."""
    return hidden


def _attach_forward(
    gates: Float[Array, "rounds gates"],
    hidden: Float[Array, "rounds width"],
    cells: Float[Array, "rounds width"],
    recur: Float[Array, "gates width"],
) -> tuple[Float[Array, "rounds width"], tuple]:
    return hidden, (gates, cells, recur)


def _attach_backward(kept: tuple, wanted: Float[Array, "rounds width"]) -> tuple:
    gates, cells, recur = kept

    def step(carry: tuple, row: tuple) -> tuple:
        after, cell = carry
        gates, now, before, wanted = row
        opens, forgets, content, leaves = jnp.split(gates, 4)
        opens, forgets, leaves = jax.nn.sigmoid(opens), jax.nn.sigmoid(forgets), jax.nn.sigmoid(leaves)
        content, shown = jnp.tanh(content), jnp.tanh(now)
        hidden = wanted + after
        cell = cell + hidden * leaves * (1.0 - shown**2)
        found = jnp.concatenate(
            [
                cell * content * opens * (1.0 - opens),
                cell * before * forgets * (1.0 - forgets),
                cell * opens * (1.0 - content**2),
                hidden * shown * leaves * (1.0 - leaves),
            ]
        )
        return (found @ recur, cell * forgets), found

    nothing = jnp.zeros_like(cells[0])
    rows = gates, cells, _before(cells), wanted
    return jax.lax.scan(step, (nothing, nothing), rows, reverse=True)[1], None, None, None


_attach.defvjp(_attach_forward, _attach_backward)


def _before(rows: Float[Array, "rounds width"]) -> Float[Array, "rounds width"]:
    """Each round's predecessor, zeros for the first."""
    return jnp.concatenate([jnp.zeros_like(rows[:1]), rows[:-1]])
