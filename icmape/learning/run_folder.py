"""The folder of a run: its configuration, and which of its files are there."""

import json
from pathlib import Path
from typing import Any

from icmape.errors import UserError
from icmape.io import read_bounded, write_atomically
from icmape.json_text import parse
from icmape.learning.checkpoints import NEWEST, PREVIOUS, settings_of
from icmape.learning.config import Config
from icmape.problem import Problem
from icmape.problem.spec import full_kind
from icmape.settings import override
from icmape.version import __version__

TRACKING = "tracking.json"
"""How trackers name the run (`icmape.tracking`)."""


def held_files(folder: Path) -> list[Path]:
    """The files of a run in a folder."""
    named = [folder / name for name in ("config.json", "plan.json", "metrics.jsonl", TRACKING, NEWEST, PREVIOUS)]
    teams = (path for where in ("", "delta-*/") for path in sorted(folder.glob(f"{where}team-*.safetensors")))
    return [path for path in (*named, *teams) if path.exists()]


def claim(folder: Path) -> None:
    """Create the folder, and delete the files of an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in held_files(folder):
        if path.name != "config.json":  # it is replaced, atomically
            path.unlink()


def write_config(folder: Path, problem: Problem, config: Config) -> None:
    """Write the problem and the settings, which repeat the run."""
    content = {"icmape": __version__, **settings_of(problem, config)}
    write_atomically(folder / "config.json", json.dumps(content, indent=2).encode() + b"\n")


def read_config(path: Path) -> tuple[str, dict[str, Any], Config]:
    """Kind and arguments of the problem, as `spec.build_named` takes them, and the settings."""
    try:
        content = parse(read_bounded(path))
        problem, learning = content["problem"], content["learning"]
        for part in (problem, problem["arguments"], learning):
            if not isinstance(part, dict):
                raise ValueError(f"given {str(part)[:60]!r} where names and values belong")
        if unknown := set(content) - {"icmape", "problem", "learning"}:
            raise ValueError(f"unknown part {min(unknown)[:60]!r}")
        if not isinstance(problem["kind"], str):
            raise ValueError(f"the kind of the problem is no name: {str(problem['kind'])[:60]!r}")
        if "kind" not in learning.get("algorithm", {"kind": ""}):
            raise UserError(f'{path}: "algorithm" does not say its kind (files of version 0.1 mean "kind": "td3")')
        return full_kind(problem), problem["arguments"], override(Config(), learning)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f'{path} is not a configuration: expected JSON with "problem" and "learning" ({error})'
        ) from error
