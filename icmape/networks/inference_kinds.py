"""Choice of the inference network of a problem."""

from typing import Any, Literal

from jaxtyping import Array, Key

from icmape.networks.ground import DenseInference, PairwiseInference
from icmape.networks.inference_networks import (
    ConvolutionalInference,
    CorrelatingInference,
    Inference,
    InferenceNetwork,
    map_of,
)
from icmape.problem import Problem

InferenceKind = Literal["default", "paper", "recurrent", "convolutional", "correlating", "pairwise", "dense"]


def check_inference(problem: Problem, wanted: InferenceKind) -> None:
    """Raise `UserError` if the network does not fit the problem."""
    if inference_kind(problem, wanted) != "recurrent":
        map_of(problem)


def inference_kind(problem: Problem, wanted: InferenceKind) -> str:
    """The kind of network that a setting selects for this problem."""
    if wanted == "paper":
        return problem.paper_inference
    if wanted == "default":
        over_cells = "pairwise" if problem.fixed_ground else "correlating"
        return "recurrent" if problem.cells is None else over_cells
    return wanted


def make_inference(
    problem: Problem, width: int, encoder: str, wanted: InferenceKind, *, key: Key[Array, ""]
) -> InferenceNetwork:
    """An inference network of the selected kind."""
    kind = inference_kind(problem, wanted)
    if kind == "recurrent":
        return Inference(problem, width, encoder, key=key)
    kinds: dict[str, Any] = {
        "convolutional": ConvolutionalInference,
        "correlating": CorrelatingInference,
        "pairwise": PairwiseInference,
        "dense": DenseInference,
    }
    network: InferenceNetwork = kinds[kind](problem, width, key=key)
    return network
