"""Teams as JSON for the JavaScript runtime (`runtime.js`)."""

import base64
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from icmape_agent.program import read_function

FORMAT, VERSION = "icmape-js", 1
AGENT = ("open", "move")
"""The functions that an agent acts with."""
RUNTIME_FILE = Path(__file__).parent / "runtime.js"


def exported(
    described: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    functions: Collection[str] | None = None,
    **about: Any,
) -> bytes:
    """The program of a team and the tensors that it reads, as JSON. `functions`: those to keep, by default all."""
    kept = described["functions"].items() if functions is None else [(n, described["functions"][n]) for n in functions]
    typed = {name: _typed(function, tensors) for name, function in kept}
    used = {params["name"] for f in typed.values() for name, _, params, *_ in f["operations"] if name == "tensor"}
    whole = {
        "format": FORMAT,
        "version": VERSION,
        **about,
        "program": {**described, "functions": typed},
        "tensors": {name: encoded(tensors[name]) for name in sorted(used)},
    }
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def exported_agent(described: Mapping[str, Any], tensors: Mapping[str, np.ndarray], delta: float) -> bytes:
    """What one agent acts with: no function of the inference, and no name of an answer."""
    own = {name: value for name, value in described.items() if name != "answers"}
    return exported(own, tensors, AGENT, delta=delta)


def _typed(function: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """A function whose operations say the type and shape of their results."""
    kinds = read_function(function, tensors).kinds[len(function["inputs"]) :]
    rows = zip(function["operations"], kinds, strict=True)
    return {**function, "operations": [[*entry, kind.type, list(kind.shape)] for entry, kind in rows]}


def encoded(tensor: np.ndarray) -> dict[str, str]:
    """Base64; in 16 bits where that loses nothing."""
    kept = tensor
    if tensor.dtype == np.float32:
        with np.errstate(over="ignore"):
            half = tensor.astype(np.float16)
        kept = half if np.array_equal(half.astype(np.float32), tensor) else tensor
    return {"type": tensor.dtype.name, "stored": kept.dtype.name, "data": base64_of(kept)}


def base64_of(tensor: np.ndarray) -> str:
    """The bytes of a tensor, the lowest of a number first."""
    little = np.ascontiguousarray(tensor).astype(tensor.dtype.newbyteorder("<"))
    return base64.b64encode(little.tobytes()).decode()
