"""Which encoder reads the features of a problem."""

from collections.abc import Callable

from jaxtyping import Array, Key

from icmape.networks.encoder import Encoder, TokenEncoder
from icmape.networks.grid import GridEncoder
from icmape.networks.recurrent import RecurrentEncoder
from icmape.problem import Features

ENCODERS: dict[str, Callable[..., TokenEncoder]] = {"paper": RecurrentEncoder, "paper+last": RecurrentEncoder}
"""Encoders of tokens by kind (`network.encoder`)."""


def make_encoder(shapes: Features, patch: int, width: int, kind: str, more: int = 0, *, key: Key[Array, ""]) -> Encoder:
    """The encoder for features of these shapes, with `more` additional entries in the tokens."""
    features = shapes.token.shape[-1] + more
    if shapes.grid is None:
        return ENCODERS[kind](features, width, kind, key=key)
    channels, rows, columns = shapes.grid.shape[-3:]
    return GridEncoder(ENCODERS[kind], features, (channels, rows, columns), patch, width, kind, key=key)
