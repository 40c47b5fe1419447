"""Sizes and kinds of a team's networks."""

from dataclasses import dataclass
from typing import ClassVar

from icmape.networks.inference_kinds import InferenceKind


@dataclass(frozen=True)
class Network:
    """Architecture of the networks."""

    RENAMED: ClassVar[dict[str, str]] = {"width": "hidden_size", "shared": "share_weights"}
    encoder: str = "paper+last"
    """Encoder of histories: "paper" (LSTM with gated pooling), "paper+last" (pooling and the last hidden state),
    "transformer" (causal, two layers), or a TokenEncoder of your own by module:Class."""
    hidden_size: int = 64
    """Width of embedding, LSTM and hidden layers."""
    share_weights: bool = True
    """One actor for all agents, with the agent's identity as input; otherwise separate weights."""
    inference: InferenceKind = "default"
    """Inference network: recurrent; or, where hypotheses are cells of a map, convolutional (5×5 receptive field),
    correlating (all pairs of cells, by displacement), pairwise (all pairs, by identity) or dense. "paper" is the
    paper's choice. "default" is pairwise where cells are the same places in all worlds, otherwise correlating, and
    recurrent without a map."""
    stop_bias: float = -4.0
    """Initial bias of STOP's logit. Value learners have none."""
