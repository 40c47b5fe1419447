"""Teams as JSON for the JavaScript runtime (`runtime.js`)."""

import base64
import json
import shutil
import subprocess
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from icmape.errors import UserError
from icmape.export.compare import Answering, Runner
from icmape.export.episodes import Played
from icmape.play.programs.describe import Program
from icmape.play.team import Team
from icmape.play.team_files import team_tensors
from icmape_agent.program import read_function

FORMAT, VERSION = "icmape-js", 1
RUNTIME, EXPORTED = "icmape.js", "team.json"
PLAYER = "play.js"
SECONDS = 600  # that Node may take for the check


def javascript_files(team: Team, program: Program) -> dict[str, bytes]:
    """The team as JSON, and the runtime."""
    tensors = {name: np.asarray(leaf) for name, leaf in team_tensors(team).items()} | program.tensors
    functions = {name: _typed(function, tensors) for name, function in program.described["functions"].items()}
    used = {params["name"] for f in functions.values() for name, _, params, *_ in f["operations"] if name == "tensor"}
    exported = {
        "format": FORMAT,
        "version": VERSION,
        "delta": team.delta,
        "card": json.loads(team.card),
        "program": {**program.described, "functions": functions},
        "tensors": {name: _encoded(tensors[name]) for name in sorted(used)},
    }
    text = json.dumps(exported, ensure_ascii=False, separators=(",", ":"))
    return {EXPORTED: text.encode(), RUNTIME: _code("runtime.js")}


def _code(name: str) -> bytes:
    return (resources.files("icmape.export") / name).read_bytes()


def _typed(function: dict[str, Any], tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """A function whose operations say the type and shape of their results."""
    kinds = read_function(function, tensors).kinds[len(function["inputs"]) :]
    rows = zip(function["operations"], kinds, strict=True)
    return {**function, "operations": [[*entry, kind.type, list(kind.shape)] for entry, kind in rows]}


def _encoded(tensor: np.ndarray) -> dict[str, str]:
    """Base64; in 16 bits where that loses nothing."""
    kept = tensor
    if tensor.dtype == np.float32:
        with np.errstate(over="ignore"):
            half = tensor.astype(np.float16)
        kept = half if np.array_equal(half.astype(np.float32), tensor) else tensor
    little = np.ascontiguousarray(kept).astype(kept.dtype.newbyteorder("<"))
    data = base64.b64encode(little.tobytes()).decode()
    return {"type": tensor.dtype.name, "stored": kept.dtype.name, "data": data}


def node_runner(files: dict[str, bytes]) -> Runner | None:
    """Plays episodes in Node; None where it is not installed."""
    node = shutil.which("node")
    if node is None:
        return None

    def run(batch: list[Played]) -> Iterable[Answering]:
        with TemporaryDirectory() as folder:
            for name, content in {**files, PLAYER: _code(PLAYER)}.items():
                (Path(folder) / name).write_bytes(content)
            lines = [
                json.dumps({"actions": e.actions.tolist(), "observations": [part.tolist() for part in e.observations]})
                for e in batch
            ]
            command = [node, *(str(Path(folder) / name) for name in (PLAYER, RUNTIME, EXPORTED))]
            try:
                done = subprocess.run(
                    command, input="\n".join(lines), capture_output=True, text=True, timeout=SECONDS, check=True
                )
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                last = (str(error.stderr or error).strip().splitlines() or [""])[-1]
                raise UserError(f"the exported team does not run in Node: {last}") from error
            for line, episode in zip(done.stdout.splitlines(), batch, strict=True):
                found = json.loads(line)
                yield _agents(found["scores"]), _answer(found["answer"], episode.answer.shape)

    return run


def _agents(rows: list[Any]) -> np.ndarray | None:
    return np.swapaxes(np.asarray(rows, np.float64), 0, 1) if rows else None


def _answer(scores: list[Any] | None, shape: tuple[int, ...]) -> np.ndarray | None:
    return None if scores is None else np.asarray(scores, np.float64).reshape(shape)
