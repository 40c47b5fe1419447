"""Timing of two implementations in alternation, so that noise affects both equally."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

QUIET = 0.1  # share of the cores that other programs may use
LEAST = 0.2  # seconds a sample takes at least: shorter work is repeated within it


@dataclass(frozen=True)
class Measurement:
    """One row of the table. `seconds` lists what every sample of each way took, ours first."""

    value: float | None
    sizes: dict[str, Any]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    repeats: int = 0
    notes: dict[str, Any] = field(default_factory=dict)


def alternate(ways: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds per call of each way, every way once per repeat, in turned order. Compile before."""
    calls = {name: math.ceil(LEAST / max(_seconds(way, 1), 1e-4)) for name, way in ways.items()}
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(repeats):
        order = list(ways) if repeat % 2 == 0 else list(reversed(ways))
        for name in order:
            samples[name].append(_seconds(ways[name], calls[name]))
    return samples


def median_ratio(samples: dict[str, list[float]]) -> float:
    """How many times longer the second way takes: the median over repeats."""
    ours, other = samples.values()
    return statistics.median(b / a for a, b in zip(ours, other, strict=True))


def assert_same(name: str, ours: Any, other: Any, tolerance: float) -> float:
    """Both ways give the same arrays, leaf by leaf, up to rounding; returns the largest relative difference."""
    worst = 0.0
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(other), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        worst = max(worst, float(np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-12)))
    if not worst <= tolerance:
        raise AssertionError(f"{name}: the two ways differ by {worst:.1e}, more than {tolerance:.0e}")
    return worst


def others_share() -> float | None:
    """Share of all cores that other programs use in a second in which we do nothing (Linux; none elsewhere)."""
    try:
        before = _jiffies()
        time.sleep(1.0)
        after = _jiffies()
    except OSError:
        return None
    spent = [b - a for a, b in zip(before, after, strict=True)]
    return 1.0 - (spent[3] + spent[4]) / max(sum(spent), 1)  # idle, and waiting for a disk


def since(began: float) -> dict[str, float]:
    """Seconds of this process: CPU time of all its threads, and wall time since `began` (Unix time)."""
    return {"cpu_seconds": time.process_time(), "wall_seconds": time.time() - began}


def _jiffies() -> list[int]:
    with open("/proc/stat") as file:
        return [int(x) for x in file.readline().split()[1:9]]


def _seconds(way: Callable[[], Any], calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        jax.block_until_ready(way())
    return (time.perf_counter() - began) / calls
