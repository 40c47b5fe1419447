"""Where a team comes from."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax

from icmape import __version__
from icmape.learning.config import to_dict
from icmape.learning.run import Run
from icmape.learning.validation import Best


def provenance(run: Run, seed: int, best: Best) -> dict[str, Any]:
    """Where a team of a seed comes from."""
    state = run.state(run.config.seeds.index(seed))
    return {
        **circumstances(),
        "seed": seed,
        "iteration": int(best.iteration),
        "iterations": run.iteration,
        "environment_steps": int(state.environment_steps),
        "seconds": round(run.seconds, 1),
        "validation": {"accuracy": round(float(best.accuracy), 4), "tau": round(float(best.tau), 3)},
        "configuration": to_dict(run.config),
    }


def circumstances() -> dict[str, Any]:
    """By which code, when and on what something was computed."""
    return {
        "icmape": __version__,
        "commit": _commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "device": _device(),
        "jax": jax.__version__,
    }


def _device() -> str:
    """What computed: an accelerator's name, or how many CPU cores this process may use."""
    kind = jax.devices()[0].device_kind
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} CPU cores" if kind == "cpu" else kind


def _commit() -> str | None:
    """The commit of the source tree, if the package runs from one; ICMAPE_COMMIT says it for a copy without history."""
    if "ICMAPE_COMMIT" in os.environ:
        return os.environ["ICMAPE_COMMIT"]
    here = Path(__file__).resolve().parents[2]
    if not (here / ".git").exists():
        return None
    command = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None
