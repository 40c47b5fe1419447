"""Writes a team for another runtime, after a check against JAX."""

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from icmape.errors import UserError, known_name
from icmape.export.compare import Agreement, Runner, agreement, check
from icmape.export.episodes import Played, reference_episodes
from icmape.play.programs.describe import Program, team_program
from icmape.play.team import Team
from icmape.play.team_files import save, team_tensors
from icmape_agent.description import MISSES, PARTS

EPISODES = 100
SEED = 20_111
FAILURES = {"lost": 0.2, "silent": 0.02}
"""Rates of failures in the episodes that compare teams which take missing readings."""


class Made(NamedTuple):
    """Files of a runtime, and how it plays."""

    files: dict[str, bytes]
    runner: Runner | None  # None where the runtime is not installed: then nothing is checked


def export(
    team: Team, to: str, out: str | os.PathLike[str], *, episodes: int = EPISODES
) -> tuple[list[Path], Agreement | None]:
    """Write a team as "light" (a team file with its program), "onnx" or "js" (a folder), and compare it with JAX.

    Nothing is written if scores differ by more than 10⁻⁵. Returns the files and the comparison; the latter is None if
    Node, which runs the JavaScript, is not installed.
    """
    make = FORMATS[known_name(to, FORMATS, "format")]
    program = team_program(team, team_tensors(team))
    if len(program.described["missing"]) == 2:
        why = "; ".join(sorted(set(program.described["missing"].values())))
        raise UserError(f"this team cannot run without JAX: {why}")
    made, path = make(team, program), Path(out)
    found = None
    if made.runner is not None:
        found = agreement(team, checked_episodes(team, program, episodes), made.runner)
        check(found, str(path))
    return _write(team, made, path), found


def checked_episodes(team: Team, program: Program, episodes: int) -> Iterator[list[Played]]:
    """Reference episodes; half of them with lost readings and silent agents, where the program takes these."""
    failing = episodes // 2 if len(program.described[MISSES]) == len(PARTS) else 0
    yield from batches(team, episodes - failing, SEED)
    if failing:
        yield from batches(team.under(**FAILURES), failing, SEED)


def batches(team: Team, episodes: int, seed: int, size: int = 100) -> Iterator[list[Played]]:
    """Reference episodes, some at a time."""
    played = reference_episodes(team, episodes, seed)
    while batch := list(itertools.islice(played, size)):
        yield batch


def _write(team: Team, made: Made, path: Path) -> list[Path]:
    from icmape.io import write_atomically

    if not made.files:
        save(team, path)
        return [path]
    if path.is_file():
        raise UserError(f"{path} is a file; expected is a folder for {', '.join(made.files)}")
    for name, content in made.files.items():
        write_atomically(path / name, content)
    return [path / name for name in made.files]


def light(team: Team, program: Program) -> Made:
    """The team's own file, which holds its program."""
    from icmape.export.light import light_runner

    return Made({}, light_runner(team, program))


def onnx(team: Team, program: Program) -> Made:
    """One file for the agents, and one for the inference."""
    try:
        from icmape.export.onnx_files import onnx_files, onnx_runner
    except ImportError as error:
        raise UserError(
            f"ONNX needs packages that are not installed ({error.name}): pip install 'icmape[onnx]'"
        ) from error

    files = onnx_files(team, program)
    return Made({**files, "team.json": _card(program)}, onnx_runner(program, files))


def javascript(team: Team, program: Program) -> Made:
    """The team as JSON, and the code that runs it."""
    from icmape.export.javascript import javascript_files, node_runner

    files = javascript_files(team, program)
    return Made(files, node_runner(files))


def _card(program: Program) -> bytes:
    """Sizes, readings and names, which the graphs do not hold."""
    about = {key: value for key, value in program.described.items() if key not in ("functions", "version")}
    return json.dumps(about, ensure_ascii=False, indent=1).encode() + b"\n"


FORMATS: dict[str, Callable[[Team, Program], Made]] = {"light": light, "onnx": onnx, "js": javascript}
