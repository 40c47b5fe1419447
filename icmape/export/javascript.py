"""Teams for the JavaScript runtime, and their episodes in Node."""

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
from icmape_agent.javascript import RUNTIME_FILE, exported

RUNTIME, EXPORTED = "icmape.js", "team.json"
PLAYER = "play.js"
SECONDS = 600  # that Node may take for the check


def javascript_files(team: Team, program: Program) -> dict[str, bytes]:
    """The team as JSON, and the runtime."""
    tensors = {name: np.asarray(leaf) for name, leaf in team_tensors(team).items()} | program.tensors
    text = exported(program.described, tensors, delta=team.delta, card=json.loads(team.card))
    return {EXPORTED: text, RUNTIME: RUNTIME_FILE.read_bytes()}


def node_runner(files: dict[str, bytes]) -> Runner | None:
    """Plays episodes in Node; None where it is not installed."""
    node = shutil.which("node")
    if node is None:
        return None

    player = (resources.files("icmape.export") / PLAYER).read_bytes()

    def run(batch: list[Played]) -> Iterable[Answering]:
        with TemporaryDirectory() as folder:
            for name, content in {**files, PLAYER: player}.items():
                (Path(folder) / name).write_bytes(content)
            lines = [
                json.dumps(
                    {
                        "actions": e.actions.tolist(),
                        "observations": [part.tolist() for part in e.observations],
                        "marks": [e.acted.tolist(), e.arrived.tolist()],
                    }
                )
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
