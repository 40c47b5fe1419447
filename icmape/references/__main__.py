"""Measure every reference on a preset and write a JSON file: python -m icmape.references PRESET OUT.json."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from icmape import __version__
from icmape.errors import UserError
from icmape.learning.files import write_atomically
from icmape.presets import preset
from icmape.problems import Problem, arguments
from icmape.references.registry import reference_team, references_for

USAGE = """usage: python -m icmape.references PRESET OUT.json [EPISODES]

Plays every reference on a preset (10,000 worlds, seed 0, δ = 0.1) and writes accuracy, τ and parameters to OUT.json."""

DELTA, SEED = 0.1, 0


def measure(problem: Problem, episodes: int, keep: Callable[[dict[str, Any]], None]) -> None:
    """Every reference with the parameter it chooses. `keep` is handed all that was found so far after each of them."""
    found: dict[str, Any] = {}
    for name in references_for(problem):
        before = time.time()
        try:
            team = reference_team(name, problem, delta=DELTA)
        except UserError as error:
            found[name] = {"error": str(error)}
            keep(found)
            continue
        setup = time.time() - before
        result = team.evaluate(episodes, SEED).to_dict()
        kept = ("accuracy", "accuracy_low", "accuracy_high", "confidence", "tau", "tau_error", "rounds", "readings")
        found[name] = {
            **{key: round(result[key], 4) for key in (*kept, "forced")},
            "setup_seconds": round(setup, 1),
            "provenance": json.loads(team.card),
        }
        print(f"{name}: accuracy {result['accuracy']:.4f}, τ {result['tau']:.3f}", flush=True)
        keep(found)


def main(given: list[str]) -> int:
    """The command; returns the exit code."""
    if not 2 <= len(given) <= 3 or any(text.startswith("-") for text in given):
        print(USAGE, file=sys.stderr)
        return 0 if {"-h", "--help"} & set(given) else 2
    try:
        problem, episodes = preset(given[0]).build(), int(given[2]) if len(given) == 3 else 10_000
        about = {"delta": DELTA, "episodes": episodes, "seed": SEED, "icmape": __version__, "jax": jax.__version__}

        def keep(found: dict[str, Any]) -> None:
            content = {"preset": given[0], "problem": arguments(problem), "references": found, **about}
            text = json.dumps({**content, "machine": _machine()}, indent=2, ensure_ascii=False)
            write_atomically(Path(given[1]), text.encode() + b"\n")

        measure(problem, episodes, keep)
    except (UserError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _machine() -> str:
    kind = jax.devices()[0].device_kind
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} CPU cores" if kind == "cpu" else kind


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
