"""Diagnoses of runs that do not learn, and settings to try."""

import logging
from typing import Any

import numpy as np

from icmape.learning.config import Config
from icmape.learning.plan import PlanFound

log = logging.getLogger("icmape")

ENOUGH = 0.4  # fraction of training before which no advice is given
STUCK = 0.98  # fraction of episodes that end at the horizon, above which the team counts as never stopping


def advice(config: Config, row: dict[str, Any], plan_tau: float | None) -> list[str]:
    """Remarks on one seed at a point of training; empty if nothing is wrong."""
    if row["iteration"] < ENOUGH * config.iterations:
        return []
    remarks = []
    accuracy, tau = _number(row, "validation_accuracy"), _number(row, "validation_tau")
    target = 1.0 - config.delta
    if config.stopping == "learned" and _number(row, "validation_forced") > STUCK:
        remarks.append("nobody stops before the last round: a higher dual.init, or more iterations")
    if config.cost == "dual" and _number(row, "step_cost") <= 0:
        remarks.append("the cost of a round is 0, so nothing speaks for stopping: set dual.init")
    if accuracy < target - 0.05 and _number(row, "validation_forced") < 0.5:
        remarks.append(
            f"it stops at accuracy {accuracy:.2f}, far below {target:g}: a lower dual.init, or a lower inference loss "
            "(more updates, a wider network)"
        )
    if accuracy < target - 0.05 and _number(row, "validation_forced") >= 0.5:
        remarks.append(
            f"even the longest episodes give accuracy {accuracy:.2f}: more rounds, more iterations or a wider network"
        )
    if plan_tau is not None and accuracy >= target and tau > plan_tau + 0.05:
        remarks.append(
            f"its non-adaptive plan takes τ {plan_tau:.1f}, the team {tau:.1f}: more iterations, or "
            "plan.follow_prob 0.9"
        )
    return remarks


def _number(row: dict[str, Any], name: str) -> float:
    value = row.get(name)
    return float("nan") if value is None else float(np.asarray(value))


class Watch:
    """Checks every report for signs that a seed does not learn, and logs each remark once."""

    def __init__(self, config: Config, plans: PlanFound | None):
        self.config = config
        lengths = [] if plans is None else np.asarray(plans.length).tolist()
        self.plan_tau = {seed: length + 1.0 for seed, length in zip(config.seeds, lengths, strict=False)}
        self.remarks: dict[int, list[str]] = {}

    def look(self, rows: list[dict[str, Any]]) -> None:
        """Store the current remarks, and log new ones."""
        for row in rows:
            seed = row["seed"]
            remarks = advice(self.config, row, self.plan_tau.get(seed))
            logged = {remark.partition(":")[2] for remark in self.remarks.get(seed, [])}
            for remark in remarks:
                if remark.partition(":")[2] not in logged:
                    log.warning("seed %d, iteration %d: %s", seed, row["iteration"], remark)
            self.remarks[seed] = remarks
