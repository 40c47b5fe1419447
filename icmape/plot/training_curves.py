"""The figure of a training run."""

import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Any

from icmape.learning.run_files import read_metrics
from icmape.learning.run_folder import read_config

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # told apart by colour-blind readers too
SMOOTHING = 0.2  # of an exponential moving average, as in the paper's curves


def draw_curves(folder: Path) -> Path | None:
    """Draw accuracy, τ, ζ and the inference loss of every seed from a run's metrics; None if there are none yet."""
    rows = read_metrics(folder / "metrics.jsonl")
    if not rows:
        return None
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kind, arguments, config = read_config(folder / "config.json")
    seeds: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        seeds[row["seed"]].append(row)
    panels = {
        "accuracy": "accuracy at the stop",
        "tau": "stopping time τ (rounds)",
        "step_cost": "cost of a round ζ",
        "inference_loss": "inference loss (nats)",
    }
    marks = {}
    if config.teacher.policy:
        marks[config.teacher.until * config.iterations] = "on its own"
    if config.finetune_fraction:
        marks[(1 - config.finetune_fraction) * config.iterations] = "polished"
    figure, axes = plt.subplots(2, 2, figsize=(10, 6.5), sharex=True, constrained_layout=True)
    for axis, (name, title) in zip(axes.flat, panels.items(), strict=True):
        for colour, (seed, lines) in zip(COLOURS * len(seeds), seeds.items(), strict=False):
            points = [(line["iteration"], line[name]) for line in lines if line.get(name) is not None]
            if points:
                at, values = zip(*points, strict=True)
                axis.plot(at, values, color=colour, alpha=0.2, linewidth=0.8)
                axis.plot(at, smooth(list(values)), color=colour, linewidth=1.8, label=f"seed {seed}")
            checked = [(line["iteration"], line.get(f"validation_{name}")) for line in lines]
            checked = [(x, y) for x, y in checked if y is not None]
            if checked:
                axis.plot(*zip(*checked, strict=True), color=colour, linestyle=":", linewidth=1.2)
        for iteration, label in marks.items():
            axis.axvline(iteration, color="grey", linewidth=0.8)
            if name == "tau":
                transform = axis.get_xaxis_transform()
                axis.text(iteration, 0.97, f" {label}", transform=transform, fontsize=8, color="grey", va="top")
        axis.set_title(title, fontsize=10)
        axis.grid(alpha=0.3)
    axes[0, 0].axhline(
        1 - config.delta, color="black", linestyle="--", linewidth=1, label=f"target {1 - config.delta:g}"
    )
    axes[0, 0].set_ylim(0, 1.02)
    axes[0, 0].legend(fontsize=8, loc="lower right")
    for axis in axes[1]:
        axis.set_xlabel("iteration")
    sizes = ", ".join(f"{k} {v}" for k, v in arguments.items() if isinstance(v, int))
    note = f"greedy episodes in training (EMA {SMOOTHING}), dotted: averaged team on validation worlds"
    figure.suptitle("\n".join([*textwrap.wrap(f"{kind} ({sizes})", 110), note]), fontsize=10)
    path = folder / "curves.png"
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def smooth(values: list[float]) -> list[float]:
    """An exponential moving average."""
    average, out = values[0], []
    for value in values:
        average += SMOOTHING * (value - average)
        out.append(average)
    return out
