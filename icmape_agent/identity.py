"""What makes a team the same team, in whatever program it runs."""

import hashlib
import json
from collections.abc import Mapping

import numpy as np

from icmape_agent.readings import Gate


def identity_of(gate: Gate, delta: float, stop: str, level: float, tensors: Mapping[str, np.ndarray]) -> str:
    """A hash of a team: its sizes, δ, stop and weights, in 32 bits where a file stores 16."""
    known = [gate.title, list(gate.sizes), gate.shows_first, float(delta), stop, float(level)]
    digest = hashlib.sha256(json.dumps(known).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype} {tensor.shape}\n".encode() + np.ascontiguousarray(tensor).tobytes())
    return digest.hexdigest()[:32]
