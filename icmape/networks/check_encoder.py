"""Whether an encoder keeps its promises, before a team is trained with it."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from icmape.errors import UserError
from icmape.networks.encoder import TokenEncoder
from icmape.networks.encoders import SHIPPED, MakeEncoder, encoder_named, name_encoder
from icmape.networks.shapes import view_shapes
from icmape.problem import Problem

MOST_ROUNDS = 64  # of the histories that are tried; the encoder is made for as many as it will read
TOLERANCE = 1e-3  # relative to the largest entry of a summary


class Summaries(NamedTuple):
    """What an encoder says of two random histories; the second one differs from the middle on."""

    unrolled: Float[Array, "rounds summary"]
    stepped: Float[Array, "rounds summary"]
    second_unrolled: Float[Array, "rounds summary"]
    second_stepped: Float[Array, "rounds summary"]
    repeated: Float[Array, "summary"]  # `summary(state)` after the first history


def check_encoder(
    encoder: str | MakeEncoder, features: int = 5, width: int = 64, rounds: int = 12, *, seed: int = 0
) -> None:
    """Raise `UserError` if an encoder breaks its contract on random tokens.

    `encoder` is `module:Class`, a name, or the class itself. `step_token` and `unroll_tokens` must agree, later tokens
    must not change earlier summaries, and `start()` must not depend on what was read before.
    """
    if isinstance(encoder, str) and ":" in encoder:
        name_encoder(encoder)
    make = encoder_named(encoder) if isinstance(encoder, str) else encoder
    name = encoder if isinstance(encoder, str) else getattr(encoder, "__name__", str(encoder))
    try:
        faults = _faults(make, name, features, width, rounds, seed)
    except UserError:
        raise
    except Exception as error:  # the user's code may raise anything
        raise UserError(
            f"the encoder {name} fails for {features} features, width {width} and {rounds} rounds: "
            f"{type(error).__name__}: {error!s:.300}"
        ) from error
    if faults:
        raise UserError("\n".join([f"the encoder {name} breaks its contract:", *(f"  - {fault}" for fault in faults)]))


def check_own_encoder(problem: Problem, kind: str, width: int) -> None:
    """`check_encoder` with the sizes that the actors of a problem have, for encoders that are not part of icmape."""
    if kind not in SHIPPED:
        features = view_shapes(problem, "agent").token.shape[-1] + problem.agents
        check_encoder(kind, features, width, problem.horizon)


def _faults(make: MakeEncoder, name: str, features: int, width: int, rounds: int, seed: int) -> list[str]:
    for_network, for_tokens, for_later = jax.random.split(jax.random.key(seed), 3)
    encoder = make(features, width, name, rounds, key=for_network)
    if not isinstance(encoder, TokenEncoder):
        return [f"it makes {type(encoder).__name__}, which is no icmape.networks.TokenEncoder"]
    tried = min(rounds, MOST_ROUNDS)
    tokens = jax.random.normal(for_tokens, (tried, features))
    middle = tried // 2
    second = tokens.at[middle:].set(jax.random.normal(for_later, (tried - middle, features)))
    before = encoder.start()
    found: Summaries = jax.tree.map(np.asarray, _read(encoder, tokens, second))
    shape = (tried, encoder.size)
    wrong = [
        f"{way} gives summaries of shape {rows.shape}; with its size of {encoder.size} that must be {shape}"
        for way, rows in (("unroll_tokens", found.unrolled), ("step_token", found.stepped))
        if rows.shape != shape
    ]
    if wrong:
        return wrong
    faults = [] if _same_trees(before, encoder.start()) else ["start() depends on what was read before"]
    if not all(np.isfinite(rows).all() for rows in found):
        return [*faults, "summaries of random tokens are not finite"]
    faults += _apart("step_token and unroll_tokens differ", found.stepped, found.unrolled)
    if not faults:
        faults += _apart(
            "step_token and unroll_tokens differ in a second history", found.second_stepped, found.second_unrolled
        )
    later = "tokens of later rounds change earlier summaries of unroll_tokens"
    faults += _apart(later, found.second_unrolled[:middle], found.unrolled[:middle])
    if type(encoder).summary is not TokenEncoder.summary:
        faults += _apart("summary(state) is not that of the last step", found.repeated[None], found.stepped[-1:])
    return faults


@eqx.filter_jit
def _read(encoder: TokenEncoder, tokens: Float[Array, "rounds features"], second: Array) -> Summaries:
    def steps(rows: Array) -> tuple[Any, Array]:
        return jax.lax.scan(lambda state, token: encoder.step_token(state, token), encoder.start(), rows)

    with jax.default_matmul_precision("float32"):  # products of lower precision differ between the two ways
        state, stepped = steps(tokens)
        summarizes = type(encoder).summary is not TokenEncoder.summary
        repeated = encoder.summary(state) if summarizes else stepped[-1]
        return Summaries(
            encoder.unroll_tokens(tokens), stepped, encoder.unroll_tokens(second), steps(second)[1], repeated
        )


def _apart(fault: str, found: Any, expected: Any) -> list[str]:
    """A sentence, if summaries (rounds, ...) differ."""
    off = np.abs(found.astype(np.float64) - expected).max(axis=1, initial=0.0)
    largest = np.abs(expected).max(initial=0.0)
    if not (off > TOLERANCE * largest).any():
        return []
    first = int(np.argmax(off > TOLERANCE * largest))
    return [f"{fault}: by {off[first]:.2g} in round {first}, where entries are as large as {largest:.2g}"]


def _same_trees(one: Any, other: Any) -> bool:
    same = eqx.tree_equal(one, other)
    return bool(same) if not isinstance(same, jax.Array) else bool(jnp.all(same))
