"""All benchmarks: a table, and results/bench.json.

python -m benchmarks.run [--only NAME] [--quick] [--out FILE]

A full run writes the file; a part or a quick look needs --out. What a run does not measure stays in the file: the
other entries when a part is run, and the last result of a benchmark that is skipped. Every entry says when it was
measured.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

from benchmarks.timing import QUIET, Measurement, others_share
from icmape.io import write_atomically

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = {  # name: module, key in the file, what is compared
    "acting": ("acting", "acting_speedup", "acting: running memory, against reading again"),
    "learning": ("learning", "learning_speedup", "learning: one pass, against each prefix alone"),
    "seeds": ("seeds", "seeds_speedup", "seeds: one program, against one each"),
    "torch": ("torch_encoder", "torch_speedup", "encoder update, against PyTorch"),
    "replay": ("replay", "replay_megabytes", "size of a replay"),
    "signal": ("maps", "signal_rounds_per_second", "source localization: rounds played a second"),
    "steps": ("steps", "pettingzoo_steps_per_second", "PettingZoo: steps per CPU second"),
    "light": ("light", "light_speedup", "an agent's reading: NumPy alone, against JAX"),
    "devices": ("devices", "devices_speedup", "training on four devices of one CPU, against one"),
    "evaluation": ("evaluation", "evaluation_megabytes", "evaluation: memory of the process"),
    "mappo": ("mappo", "mappo_speedup", "CPU seconds to a good team, against JaxMARL's MAPPO"),
}
UNITS = {"replay": " MB", "evaluation": " MB", "signal": " /s", "steps": " /s"}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Speed, as ratios in one run.")
    parser.add_argument("--only", choices=BENCHMARKS, action="append", help="one of them; may be repeated")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, for a first look")
    parser.add_argument("--out", type=Path, help="file to write (default for a full run: results/bench.json)")
    chosen = parser.parse_args()
    console = Console()
    began = time.perf_counter()
    measured, busy = {}, {}
    for name in chosen.only or BENCHMARKS:
        module, _, label = BENCHMARKS[name]
        with console.status(label):
            busy[name] = others_share()
            measured[name] = importlib.import_module(f"benchmarks.{module}").measure(chosen.quick)
    console.print(table(measured))
    if max(share or 0.0 for share in busy.values()) > QUIET:
        console.print("Other programs were running too: seconds are longer than need be, and ratios less certain.")
    partial = chosen.quick or chosen.only
    out = chosen.out or (None if partial else ROOT / "results" / "bench.json")
    if out is not None:
        about = {**circumstances(), "seconds": time.perf_counter() - began, "quick": chosen.quick}
        written = content(measured, about, busy)
        if out.exists():
            written = merge(json.loads(out.read_text()), written, whole=not chosen.only)
        write_atomically(out, json.dumps(rounded(written), indent=2).encode() + b"\n")
        console.print(f"written to {out}")


def table(measured: dict[str, Measurement]) -> Table:
    """The table for a terminal."""
    shown = Table(title="Benchmarks")
    shown.add_column("benchmark")
    for heading in ("ours", "other way", "result"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, measurement in measured.items():
        times = [f"{total(name, samples):.3g} s" for samples in measurement.seconds.values()] or ["", ""]
        result = "–" if measurement.value is None else f"{measurement.value:.3g}{UNITS.get(name, ' ×')}"
        sizes = measurement.notes.get("missing") or ", ".join(
            f"{key} {value}" for key, value in measurement.sizes.items()
        )
        shown.add_row(f"{BENCHMARKS[name][2]}\n[dim]{sizes}[/dim]", *times, result)
        for row in measurement.notes.get("rows", ()):
            shown.add_row("  " + ", ".join(f"{key} {value:.4g}" for key, value in row.items()), "", "", "")
    return shown


def total(name: str, samples: list[float]) -> float:
    """Programs that run one after the other add up; repeats of the same work do not."""
    return sum(samples) if name == "seeds" else statistics.median(samples)


def content(
    measured: dict[str, Measurement], about: dict[str, Any], busy: Mapping[str, float | None]
) -> dict[str, Any]:
    """What the file holds: the results first, then all that they come from."""
    results = {BENCHMARKS[name][1]: measurement.value for name, measurement in measured.items()}
    details = {
        name: {
            "what": BENCHMARKS[name][2],
            "sizes": measurement.sizes,
            "repeats": measurement.repeats,
            "seconds": measurement.seconds,
            **fastest(name, measurement.seconds),
            **measurement.notes,
            "measured": about | {"others_share_before": busy[name]},
        }
        for name, measurement in measured.items()
    }
    return {**results, "measurements": details, **about, "others_share_before": dict(busy)}


def merge(old: dict[str, Any], new: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    """This run's content, and what an earlier one measured and this one did not."""
    before, now = old["measurements"], new["measurements"]
    older = {}
    for name, entry in before.items():
        if name in BENCHMARKS and name not in now:
            older[name] = dated(old, name)
        elif name in now and "missing" in now[name] and "missing" not in entry:
            older[name] = dated(old, name) | {"skipped_later": now[name]["missing"]}
    entries = {name: (now | older)[name] for name in BENCHMARKS if name in now | older}
    results = {BENCHMARKS[name][1]: (old if name in older else new)[BENCHMARKS[name][1]] for name in entries}
    keys = {key for _, key, _ in BENCHMARKS.values()}
    about = {key: value for key, value in (new if whole else old).items() if key not in keys}
    return {**results, **about, "measurements": entries}


def dated(content: dict[str, Any], name: str) -> dict[str, Any]:
    """A file's entry with the circumstances it was measured in; older files have them for all entries at once."""
    whole = {key: value for key, value in content.items() if key in circumstances()}
    return {"measured": whole} | content["measurements"][name]


def fastest(name: str, seconds: dict[str, list[float]]) -> dict[str, float]:
    """The ratio of the fastest samples: what other programs disturbed least."""
    if name == "seeds" or not seconds:
        return {}
    ours, other = seconds.values()
    return {"ratio_of_fastest": min(other) / min(ours)}


def circumstances() -> dict[str, Any]:
    """Where and when."""
    device = jax.devices()[0]
    return {
        "device": device.device_kind,
        "platform": device.platform,
        "cores": os.cpu_count(),
        "jax": jax.__version__,
        "commit": git("rev-parse", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--", "icmape", "benchmarks")),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def git(*command: str) -> str | None:
    """What git says about this source tree, if it is one."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def rounded(value: Any) -> Any:
    """Four significant digits: more would be noise."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(x) for key, x in value.items()}
    return [rounded(x) for x in value] if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    main()
