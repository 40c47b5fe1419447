"""What every method was given, beside what ours had reached with as much."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from icmape.plot.items import DASH, Table
from paper.collected import NOT_RUN, Results
from paper.experiments import MAIN, Method, Setting
from paper.work_plan import run_record, trained_share

Rows = list[dict[str, Any]]


class Budget(NamedTuple):
    """A run's size, as far as it got."""

    worlds: int  # simulated for each team
    share: float  # of what was planned
    rounds: float  # played in them by a team, in the mean
    steps: int  # gradient steps of the inference network
    batch: int  # episodes in each
    width: int
    minutes: float


def budget(results: Results, setting: Setting, method: Method) -> Budget | None:
    """What a method's run took, from its settings and its metrics; none if either is missing."""
    rows, settings = run_record(setting, method, results.plan)
    if not rows or not settings:
        return None
    iterations = max(row["iteration"] for row in rows)
    last = [row for row in rows if row["iteration"] == iterations]
    members = settings.get("population_size", 1)
    return Budget(
        iterations * settings["num_envs"] * members,
        iterations / settings["iterations"],
        float(np.mean([row["environment_steps"] for row in last])) * members,
        iterations * settings["gradient_steps"],
        settings["batch_size"],
        settings["network"]["hidden_size"],
        max(row["seconds"] for row in last) / 60,
    )


def named(results: Results, setting: Setting, method: Method) -> str:
    """A method's name, and how far its run got if that is not the end."""
    share = trained_share(setting, method, results.plan)
    return method.label if share is None or share >= 1 else f"{method.label} [{share:.0%} of its budget]"


def reached(rows: Rows, worlds: int, per_iteration: int) -> tuple[float, float] | None:
    """Accuracy and τ of the best validated teams of a run by the time it had simulated so many worlds, in the mean."""
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
    for method in (one for one in setting.methods if one.level is None):
        one = budget(results, setting, method) if results.teams(setting, method) else None
        if one is None:
            rows.append([method.label, *[DASH] * 6, NOT_RUN])
            continue
        ours_by_then = reached(our_metrics, one.worlds, ours.worlds // done) if ours and method.role != MAIN else None
        rows.append(
            [
                method.label,
                f"{one.worlds / 1e6:.2f} M" + ("" if one.share >= 1 else f" ({one.share:.0%} of the plan)"),
                f"{one.rounds / 1e6:.1f} M",
                f"{one.steps:,} × {one.batch}",
                str(one.width),
                f"{one.minutes:.1f} min",
                f"{ours_by_then[0]:.3f} at τ {ours_by_then[1]:.2f}" if ours_by_then else DASH,
                "",
            ]
        )
    headings = [
        "method",
        "worlds a team",
        "rounds",
        "gradient steps × episodes",
        "width",
        "time, all seeds",
        "ours after as many worlds",
        "remark",
    ]
    note = (
        "The budget is the number of simulated worlds, which depends neither on the machine nor on who shared it: a "
        "team that stops late sees more rounds in them. Runs that shared a GPU took longer than alone. Gradient steps "
        "are the inference network's. Ours after as many worlds: its best validated teams by then, in the midst of a "
        "training that was planned for more."
    )
    return Table(
        f"{setting.name}-budgets", f"What each method was given: {results.title(setting)}", headings, rows, note
    )
