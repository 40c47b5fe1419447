"""Encoders and heads; each has `step` (one round) and `unroll` (all rounds), and both agree."""

from icmape.networks.encoder import EncoderKind, EncoderState, RecurrentEncoder
from icmape.networks.heads import Actor, Actors, Critic, Inference, StopScore, TeamValue

__all__ = [
    "Actor",
    "Actors",
    "Critic",
    "EncoderKind",
    "EncoderState",
    "Inference",
    "RecurrentEncoder",
    "StopScore",
    "TeamValue",
]
