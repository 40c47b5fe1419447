"""Reads team files: tensors, and the description of the program. Nothing in a file is executed as code."""

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icmape_agent.errors import UserError
from icmape_agent.program import PREFIX
from icmape_agent.sealing import SEAL, is_whole

FORMAT = "icmape-team"
KEY = "program"
"""The name of a team's program in the metadata of its file."""
VERSION = 1
MOST_BYTES = 2**28  # of a file


class TeamFile(NamedTuple):
    """What a light agent reads of a team file."""

    path: Path
    described: dict[str, Any]
    delta: float
    tensors: dict[str, np.ndarray]


def read(source: str | os.PathLike[str]) -> TeamFile:
    """The program and the tensors of a team file, or of a pretrained team by name where icmape is installed."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as decode

    path = find(source)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"{path} has more than {MOST_BYTES:,} bytes: it is no team file")
        data = path.read_bytes()
        tensors = {name: _widened(name, tensor) for name, tensor in decode(data).items()}
        metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__") or {}
    except (SafetensorError, KeyError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is not a whole team file: {error}") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    if metadata.get("format") != FORMAT:
        raise UserError(f"{path} is a safetensors file, but not a team of icmape's")
    if KEY not in metadata:
        raise UserError(f"{path} has no program: write one with `icmape export {path} --to light --out FILE`")
    if not is_whole(data, str(metadata.get(SEAL))):
        raise UserError(
            f"{path} is damaged or was edited: its content does not have the SHA-256 that it was written with; "
            "copy it again from where it came from"
        )
    try:
        described, delta = json.loads(metadata[KEY]), float(json.loads(metadata["delta"]))
        if not isinstance(described, dict) or described.get("version") != VERSION:
            raise ValueError("its version is not known")
        _add_k(described.get("answers"), metadata)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: its program cannot be read ({error}); was it written by another version?") from error
    return TeamFile(path, described, delta, tensors)


def _add_k(answers: Any, metadata: dict[str, Any]) -> None:
    """How many answers are right, in files of version 0.13.1 and older: an argument of their problem."""
    if not isinstance(answers, dict) or answers.get("kind") != "topk" or "k" in answers:
        return
    problem = json.loads(metadata.get("problem", "{}"))
    arguments = problem.get("arguments") if isinstance(problem, dict) else None
    k = arguments.get("k") if isinstance(arguments, dict) else None
    if type(k) is int and 1 <= k <= answers["shape"][0]:
        answers["k"] = k


def find(source: str | os.PathLike[str]) -> Path:
    """The path of a team file, or of a pretrained team where icmape is installed."""
    path = Path(source)
    if path.is_file():
        return path
    package = find_spec("icmape")  # found, not imported
    if package is not None and package.origin and path.parent == Path("."):
        pretrained = Path(package.origin).parent / "play" / "pretrained" / f"{path.name}.safetensors"
        if pretrained.is_file():
            return pretrained
    raise UserError(f"no team file {source}, and no pretrained team of that name")


def _widened(name: str, tensor: np.ndarray) -> np.ndarray:
    """Weights that are stored in 16 bits, in 32; constants of the program as they are."""
    return tensor.astype(np.float32) if tensor.dtype == np.float16 and not name.startswith(PREFIX) else tensor
