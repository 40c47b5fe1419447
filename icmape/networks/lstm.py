"""An LSTM over a history, with a gradient of its own, and without the rounds that nobody played.

Two things that automatic differentiation of a plain loop does not do. The gradient of the weights is one product over
all rounds, outside the loop. And the number of rounds may be known only when it runs: blocks of rounds behind it are
skipped, forward and backward.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

BLOCK = 8  # rounds that are skipped or run together


def unroll_lstm(
    embedded: Float[Array, "rounds width"],
    weights: tuple[Float[Array, "gates width"], Float[Array, "gates width"], Float[Array, "gates"]],
    rounds: Int[Array, ""] | None = None,
) -> Float[Array, "rounds width"]:
    """Hidden states of the first `rounds` at least, then zeros; weights are the input's, the recurrent ones and a bias.

    Gradients are right for anything that reads the first `rounds` only.
    """
    enter, recur, bias = weights
    hidden, cells = jax.lax.stop_gradient(_forward(*jax.lax.stop_gradient((embedded, weights)), rounds))
    gates = embedded @ enter.T + _before(hidden) @ recur.T + bias[None]
    return _attach(gates, hidden, cells, recur, rounds)


def lstm_cell(
    gates: Float[Array, "gates"], cell: Float[Array, "width"]
) -> tuple[Float[Array, "width"], Float[Array, "width"]]:
    """Hidden state and cell after a round, from what enters the four gates."""
    enter, forget, content, leave = jnp.split(gates, 4)
    cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(enter) * jnp.tanh(content)
    return jax.nn.sigmoid(leave) * jnp.tanh(cell), cell


def scan_blocks(
    step: Callable[[Any, Any], tuple[Any, Any]],
    carry: PyTree,
    rows: PyTree,
    rounds: Int[Array, ""] | None,
    *,
    reverse: bool = False,
) -> PyTree:
    """What `lax.scan` gives for each row, but zeros for blocks of rows from `rounds` on, which are not run."""
    if rounds is None:
        return jax.lax.scan(step, carry, rows, reverse=reverse)[1]
    length = jax.tree.leaves(rows)[0].shape[0]
    blocks = -(-length // BLOCK)
    missing = blocks * BLOCK - length
    padded = jax.tree.map(lambda x: jnp.pad(x, ((0, missing), *((0, 0),) * (x.ndim - 1))), rows)
    split = jax.tree.map(lambda x: x.reshape(blocks, BLOCK, *x.shape[1:]), padded)

    def run(carry: Any, block: Any) -> tuple[Any, Any]:
        return jax.lax.scan(step, carry, block, reverse=reverse)

    def skip(carry: Any, block: Any) -> tuple[Any, Any]:
        shapes = jax.eval_shape(run, carry, block)[1]
        return carry, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

    def one(carry: Any, numbered: tuple) -> tuple[Any, Any]:
        number, block = numbered
        return jax.lax.cond(number * BLOCK < rounds, run, skip, carry, block)

    found = jax.lax.scan(one, carry, (jnp.arange(blocks), split), reverse=reverse)[1]
    return jax.tree.map(lambda x: x.reshape(blocks * BLOCK, *x.shape[2:])[:length], found)


def _forward(
    embedded: Float[Array, "rounds width"], weights: tuple, rounds: Int[Array, ""] | None
) -> tuple[Float[Array, "rounds width"], Float[Array, "rounds width"]]:
    enter, recur, bias = weights

    def step(carry: tuple, row: Float[Array, "width"]) -> tuple:
        # The input's product could be one for all rounds, outside the loop: on a CPU that is half as fast.
        carry = lstm_cell(enter @ row + recur @ carry[0] + bias, carry[1])
        return carry, carry

    nothing = jnp.zeros(recur.shape[1])
    found: tuple = scan_blocks(step, (nothing, nothing), embedded, rounds)
    return found


@jax.custom_vjp
def _attach(
    gates: Float[Array, "rounds gates"],
    hidden: Float[Array, "rounds width"],
    cells: Float[Array, "rounds width"],
    recur: Float[Array, "gates width"],
    rounds: Int[Array, ""] | None,
) -> Float[Array, "rounds width"]:
    """The hidden states as a function of the gates, each with all that it leads to in later rounds."""
    return hidden


def _attach_forward(
    gates: Float[Array, "rounds gates"],
    hidden: Float[Array, "rounds width"],
    cells: Float[Array, "rounds width"],
    recur: Float[Array, "gates width"],
    rounds: Int[Array, ""] | None,
) -> tuple[Float[Array, "rounds width"], tuple]:
    return hidden, (gates, cells, recur, rounds)


def _attach_backward(kept: tuple, wanted: Float[Array, "rounds width"]) -> tuple:
    gates, cells, recur, rounds = kept

    def step(carry: tuple, row: tuple) -> tuple:
        after, cell = carry
        gates, now, before, wanted = row
        enter, forget, content, leave = jnp.split(gates, 4)
        enter, forget, leave = jax.nn.sigmoid(enter), jax.nn.sigmoid(forget), jax.nn.sigmoid(leave)
        content, shown = jnp.tanh(content), jnp.tanh(now)
        hidden = wanted + after
        cell = cell + hidden * leave * (1.0 - shown**2)
        found = jnp.concatenate(
            [
                cell * content * enter * (1.0 - enter),
                cell * before * forget * (1.0 - forget),
                cell * enter * (1.0 - content**2),
                hidden * shown * leave * (1.0 - leave),
            ]
        )
        return (found @ recur, cell * forget), found

    nothing = jnp.zeros_like(cells[0])
    rows = gates, cells, _before(cells), wanted
    return scan_blocks(step, (nothing, nothing), rows, rounds, reverse=True), None, None, None, None


_attach.defvjp(_attach_forward, _attach_backward)


def _before(rows: Float[Array, "rounds width"]) -> Float[Array, "rounds width"]:
    """Each round's predecessor, zeros for the first."""
    return jnp.concatenate([jnp.zeros_like(rows[:1]), rows[:-1]])
