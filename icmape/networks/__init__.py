"""Encoders and heads; each has `step` (one round) and `unroll` (all rounds), and both agree."""

from icmape.networks.encoder import EncoderKind, EncoderState, RecurrentEncoder
from icmape.networks.grid import Encoder, GridEncoder
from icmape.networks.heads import Actor, Actors, Critic, StopScore, TeamValue
from icmape.networks.inference_kinds import InferenceKind, check_inference, make_inference
from icmape.networks.inference_networks import ConvolutionalInference, CorrelatingInference, Inference, InferenceNetwork

__all__ = [
    "Actor",
    "Actors",
    "ConvolutionalInference",
    "CorrelatingInference",
    "Critic",
    "Encoder",
    "EncoderKind",
    "EncoderState",
    "GridEncoder",
    "Inference",
    "InferenceKind",
    "InferenceNetwork",
    "RecurrentEncoder",
    "StopScore",
    "TeamValue",
    "check_inference",
    "make_inference",
]
