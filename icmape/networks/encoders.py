"""Which encoder reads the features of a problem."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Array, Key

from icmape.errors import UserError, known_name
from icmape.imports import is_path, load_object
from icmape.networks.encoder import Encoder, TokenEncoder
from icmape.networks.grid import GridEncoder
from icmape.networks.recurrent import RecurrentEncoder
from icmape.networks.transformer import TransformerEncoder
from icmape.problem import Features

MakeEncoder = Callable[..., TokenEncoder]
"""Called with the numbers of features, the width, its kind, the most rounds of a history, and `key`."""


def _recurrent(features: int, width: int, kind: str, rounds: int, *, key: Key[Array, ""]) -> RecurrentEncoder:
    return RecurrentEncoder(features, width, kind, key=key)


ENCODERS: dict[str, MakeEncoder] = {
    "paper": _recurrent,
    "paper+last": _recurrent,
    "transformer": TransformerEncoder,
}
"""Encoders of tokens by kind (`network.encoder`); those of the user's own by `module:Class`."""

SHIPPED = frozenset(ENCODERS)


def name_encoder(path: str) -> None:
    """Make an encoder of the user's known by its `module:Class`. Its code is imported: the user must have named it."""
    if path not in ENCODERS:
        ENCODERS[path] = load_object(path, "network.encoder")


def encoder_named(kind: str) -> MakeEncoder:
    """The encoder of this kind. Code that only a file names is not imported."""
    if kind in ENCODERS:
        return ENCODERS[kind]
    if is_path(kind):
        raise UserError(
            f"the encoder is {kind}, which is not part of icmape: to run this code, add --network.encoder {kind}, or "
            f"call icmape.networks.name_encoder({kind!r})"
        )
    return ENCODERS[known_name(kind, ENCODERS, "network.encoder")]


def make_encoder(
    shapes: Features, patch: int, width: int, kind: str, rounds: int, more: int = 0, *, key: Key[Array, ""]
) -> Encoder:
    """The encoder for features of these shapes and so many rounds, with `more` additional entries in the tokens."""
    features = shapes.token.shape[-1] + more
    make = encoder_named(kind)
    if shapes.grid is None:
        return make(features, width, kind, rounds, key=key)
    channels, rows, columns = shapes.grid.shape[-3:]
    return GridEncoder(partial(make, rounds=rounds), features, (channels, rows, columns), patch, width, kind, key=key)
