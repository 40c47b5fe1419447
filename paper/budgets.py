"""Training budget of every method, and what ours had reached with the same budget."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from icmape.plot.items import DASH, Table
from paper.collected import NOT_RUN, Results
from paper.experiments import MAIN, Method, Setting
from paper.work_plan import run_record, trained_share

Rows = list[dict[str, Any]]


class Budget(NamedTuple):
    """Size of a run, up to its last iteration."""

    worlds: int  # simulated for each team in training
    plan: int  # before that, in a pass of its plan
    share: float  # of what was planned
    rounds: float  # played in them by a team, on average
    steps: int  # gradient steps of the inference network
    batch: int  # episodes in each
    width: int
    minutes: float


def budget(results: Results, setting: Setting, method: Method) -> Budget | None:
    """Budget of a method's run, from its settings and metrics; none if either is missing."""
    rows, settings = run_record(setting, method, results.plan)
    if not rows or not settings:
        return None
    iterations = max(row["iteration"] for row in rows)
    last = [row for row in rows if row["iteration"] == iterations]
    members = settings.get("population_size", 1)
    return Budget(
        iterations * settings["num_envs"] * members,
        _plan_worlds(settings.get("plan", {})),
        iterations / settings["iterations"],
        float(np.mean([row["environment_steps"] for row in last])) * members,
        iterations * settings["gradient_steps"],
        settings["batch_size"],
        settings["network"]["hidden_size"],
        max(row["seconds"] for row in last) / 60,
    )


def _plan_worlds(plan: dict[str, Any]) -> int:
    """Worlds of a plan's settings; those of early versions have other names, and 0 iterations mean none."""
    return int(plan.get("iterations", 0) * plan.get("num_plans", 0) * plan.get("num_envs", 0))


def named(results: Results, setting: Setting, method: Method) -> str:
    """Label of a method, with the share of its budget if the run did not finish."""
    share = trained_share(setting, method, results.plan)
    return method.label if share is None or share >= 1 else f"{method.label} [{share:.0%} of its budget]"


def reached(rows: Rows, worlds: int, per_iteration: int) -> tuple[float, float] | None:
    """Mean accuracy and τ of the best validated teams of a run after it has simulated this many worlds."""
    seeds = {
        row["seed"]: row for row in rows if row["iteration"] * per_iteration <= worlds and row.get("best_accuracy")
    }
    if not seeds:
        return None
    accuracy, tau = (float(np.mean([row[name] for row in seeds.values()])) for name in ("best_accuracy", "best_tau"))
    return accuracy, tau


def budgets(results: Results, setting: Setting) -> Table:
    """A row for every method."""
    ours, our_metrics = budget(results, setting, setting.main), results.metrics(setting, setting.main)
    done = max((row["iteration"] for row in our_metrics), default=1)
    rows = []
    for method in setting.methods:
        if method.level is not None:
            continue
        size = budget(results, setting, method) if results.teams(setting, method) else None
        if size is None:
            rows.append([method.label, *[DASH] * 7, NOT_RUN])
            continue
        by_then = reached(our_metrics, size.worlds, ours.worlds // done) if ours and method.role != MAIN else None
        worlds = f"{size.worlds / 1e6:.2f} M" + ("" if size.share >= 1 else f" ({size.share:.0%} of the plan)")
        plan = f"{size.plan / 1e6:.2f} M" if size.plan else DASH
        cells = [f"{size.rounds / 1e6:.1f} M", plan, f"{size.steps:,} × {size.batch}", f"{size.width}"]
        same = f"{by_then[0]:.3f} at τ {by_then[1]:.2f}" if by_then else DASH
        rows.append([method.label, worlds, *cells, f"{size.minutes:.1f} min", same, ""])
    headings = [
        "method",
        "worlds a team",
        "rounds",
        "worlds of its plan",
        "gradient steps × episodes",
        "width",
        "time, all seeds",
    ]
    headings += ["ours after as many worlds", "remark"]
    note = (
        "The budget is the number of simulated worlds, in training and in the plan before it. It does not depend on "
        "the machine or its load. A team that "
        "stops late plays more rounds in the same number of worlds. Runs that shared a GPU took longer than alone. "
        "Gradient steps are the inference network's. Ours after as many worlds: its best validated teams up to that "
        "point of a longer training run."
    )
    return Table(f"{setting.name}-budgets", f"Training budgets: {results.title(setting)}", headings, rows, note)
