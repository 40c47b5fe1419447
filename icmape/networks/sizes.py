"""Sizes and kinds of a team's networks."""

from dataclasses import dataclass
from typing import ClassVar

from icmape.networks.inference_kinds import InferenceKind


@dataclass(frozen=True)
class Network:
    """Sizes of the networks."""

    RENAMED: ClassVar[dict[str, str]] = {"width": "hidden_size", "shared": "share_weights"}
    encoder: str = "paper+last"
    """What an encoder returns: the gated pooling ("paper"), or that and the last hidden state ("paper+last")."""
    hidden_size: int = 64
    """Width of embedding, LSTM and hidden layers."""
    share_weights: bool = True
    """One actor for all agents, told who it is; otherwise each agent has weights of its own."""
    inference: InferenceKind = "default"
    """Kind of the inference network: recurrent, or, where hypotheses are cells of a map, convolutional (sees 5×5
    cells), correlating (every cell hears from every other one, by how far it is), pairwise (by which two they are) or
    dense (all cells at once; fast on a CPU). "paper" is the paper's for the problem; "default" is pairwise where cells
    are the same places in all worlds, else correlating, and recurrent where there are none."""
    stop_bias: float = -4.0
    """Where STOP's score starts: low, so that early episodes are long enough. Value learners have none."""
