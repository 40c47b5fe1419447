"""Measure baselines on a preset and write a JSON file: python -m paper.measure_baselines PRESET OUT.json."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from icmape.baselines.registry import baseline_team, baselines_for
from icmape.cli.teams import changes_of, chosen_problem
from icmape.errors import UserError
from icmape.io import write_atomically
from icmape.problem import Problem
from icmape.problem.spec import describe
from icmape.version import __version__

DELTA, SEED = 0.1, 0


def measure(problem: Problem, names: Sequence[str], episodes: int, keep: Callable[[dict[str, Any]], None]) -> None:
    """Evaluate baselines with their tuned parameters. `keep` is called with all results after each of them."""
    measured: dict[str, Any] = {}
    for name in names or baselines_for(problem):
        before = time.time()
        try:
            team = baseline_team(name, problem, delta=DELTA)
        except UserError as error:
            measured[name] = {"error": str(error)}
            keep(measured)
            continue
        setup = time.time() - before
        result = team.evaluate(episodes, SEED).to_dict()
        columns = ("accuracy", "accuracy_low", "accuracy_high", "confidence", "tau", "tau_error", "rounds", "readings")
        measured[name] = {
            **{key: round(result[key], 4) for key in (*columns, "forced")},
            "setup_seconds": round(setup, 1),
            "provenance": json.loads(team.card),
        }
        print(f"{name}: accuracy {result['accuracy']:.4f}, τ {result['tau']:.3f}", flush=True)
        keep(measured)


def main(words: list[str]) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser("python -m paper.measure_baselines", description=__doc__)
    parser.add_argument("preset")
    parser.add_argument("out", type=Path)
    parser.add_argument("episodes", type=int, nargs="?", default=10_000)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these baselines instead of all")
    parser.add_argument(
        "--data", nargs="+", default=[], help="files or folders of measurements, for problems that need them"
    )
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="arguments of the problem to change")
    args = parser.parse_args(words)
    try:
        problem = chosen_problem(args.preset, None, changes_of(args.data, args.set))
        about = {"delta": DELTA, "episodes": args.episodes, "seed": SEED, "icmape": __version__, "jax": jax.__version__}

        def keep(measured: dict[str, Any]) -> None:
            described = describe(problem, local=False)["arguments"]
            content = {"preset": args.preset, "problem": described, "baselines": measured, **about}
            text = json.dumps({**content, "machine": _machine()}, indent=2, ensure_ascii=False)
            write_atomically(args.out, text.encode() + b"\n")

        measure(problem, args.only, args.episodes, keep)
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
