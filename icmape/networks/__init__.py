"""Encoders and heads. Each has `step` (one round) and `unroll` (all rounds), with equal results."""

from icmape.networks.check_encoder import check_encoder, check_own_encoder
from icmape.networks.encoder import Encoder, TokenEncoder
from icmape.networks.encoders import ENCODERS, encoder_named, name_encoder
from icmape.networks.grid import GridEncoder
from icmape.networks.heads import Actor, Actors, Critic, StopScore, TeamValue
from icmape.networks.inference_kinds import InferenceKind, check_inference, make_inference
from icmape.networks.inference_networks import ConvolutionalInference, CorrelatingInference, Inference, InferenceNetwork
from icmape.networks.recurrent import RecurrentEncoder
from icmape.networks.transformer import TransformerEncoder

__all__ = [
    "ENCODERS",
    "Actor",
    "Actors",
    "ConvolutionalInference",
    "CorrelatingInference",
    "Critic",
    "Encoder",
    "GridEncoder",
    "Inference",
    "InferenceKind",
    "InferenceNetwork",
    "RecurrentEncoder",
    "StopScore",
    "TeamValue",
    "TokenEncoder",
    "TransformerEncoder",
    "check_encoder",
    "check_inference",
    "check_own_encoder",
    "encoder_named",
    "make_inference",
    "name_encoder",
]
