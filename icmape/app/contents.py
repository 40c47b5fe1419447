"""What an app holds of a team: its program, weights in 8 bits, worlds, and words for people."""

import dataclasses
import gzip
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from icmape.app.rounding import Rows, rounded
from icmape.app.worlds import Worlds, draw_worlds
from icmape.errors import UserError
from icmape.play.inference import ExactInference
from icmape.play.programs.describe import team_program
from icmape.play.programs.functions import CannotTrace, inference_functions
from icmape.play.team import Team
from icmape.play.team_files import team_tensors
from icmape_agent.geography import by_towns, map_of
from icmape_agent.javascript import base64_of, encoded, exported

EXACT = "exact."
"""Functions of the exact posterior are named as those of the inference, after this."""
STEP = "step"
WORLD, BAYES = "world.", "bayes."  # of constants
KINDS = ("categorical", "factored", "topk")


class Contents(NamedTuple):
    """A team in an app."""

    name: str
    """On its tab."""
    team: Team
    """With its weights rounded."""
    data: bytes
    """JSON, compressed."""


def contents(name: str, team: Team, worlds: int, seed: int) -> Contents:
    """The content of an app for a team, with this number of worlds of a seed."""
    small, packed = rounded(team)
    named = team_tensors(small)
    program = team_program(small, named)
    if program.described["missing"]:
        reasons = "; ".join(sorted(set(program.described["missing"].values())))
        raise UserError(f"{name} cannot play in a browser: {reasons}")
    if program.described["answers"]["kind"] not in KINDS:
        raise UserError(f"{name} cannot play in a browser: its answers are of a kind that only its own code knows")
    drawn = draw_worlds(small, worlds, seed)
    functions = {**program.described["functions"], STEP: _renamed(drawn.function, WORLD)}
    tensors = {key: np.asarray(leaf) for key, leaf in named.items()} | program.tensors
    tensors |= {WORLD + key: np.asarray(value) for key, value in drawn.constants.items()}
    for key, (function, constants) in exact_functions(small).items():
        functions[key] = function
        tensors |= constants
    words = json.loads(program.text) | {"functions": functions}
    about: dict[str, Any] = {
        "name": name,
        "delta": team.delta,
        "people": for_people(small, words, drawn),
        "worlds": in_worlds(drawn),
    }
    content = json.loads(exported(words, tensors, None, **about))
    content["tensors"] |= {key: in_bytes(rows) for key, rows in packed.items() if key in content["tensors"]}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return Contents(name, small, gzip.compress(text, mtime=0))


def exact_functions(team: Team) -> dict[str, tuple[dict[str, Any], dict[str, np.ndarray]]]:
    """The functions of the exact posterior with their constants; none if it has none, or programs cannot compute it."""
    if team.problem.posterior != "exact":
        return {}
    constants: dict[str, np.ndarray] = {}
    try:
        functions = inference_functions(dataclasses.replace(team, inference=ExactInference()), {}, constants, False)
    except CannotTrace:
        return {}
    named = {BAYES + key: np.asarray(value) for key, value in constants.items()}
    return {EXACT + key: (_renamed(function, BAYES), named) for key, function in functions.items()}


def _renamed(function: dict[str, Any], prefix: str) -> dict[str, Any]:
    """A function whose constants have longer names."""
    operations = [
        [name, operands, {"name": prefix + params["name"]} if name == "tensor" else params]
        for name, operands, params in function["operations"]
    ]
    return {**function, "operations": operations}


def in_bytes(rows: Rows) -> dict[str, str]:
    """A matrix for `icmape.decoded` in runtime.js."""
    return {"type": "float32", "stored": "int8", "data": base64_of(rows.numbers), "scales": base64_of(rows.scales)}


def in_worlds(drawn: Worlds) -> dict[str, Any]:
    """Worlds as JSON values."""
    parts = {name: [_array(x) for x in arrays] for name, arrays in drawn.arrays.items()}
    return {"count": len(drawn.truths), **parts, "truths": drawn.truths}


def _array(values: np.ndarray) -> dict[str, Any]:
    return {**encoded(values), "shape": list(values.shape)}


def for_people(team: Team, words: Mapping[str, Any], drawn: Worlds) -> dict[str, Any]:
    """Words and a map."""
    problem = team.problem
    return {
        "question": problem.question,
        "explanation": problem.explanation,
        "remark": problem.remark,
        "parts": drawn.parts,
        "values": drawn.values,
        "shows": drawn.shows,
        "map": map_of(words["display"]["actions"]),
        "near": by_towns(words["display"]["actions"]),
    }
