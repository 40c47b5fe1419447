"""What is wrong with a run that does not learn, and which setting to try."""

from typing import Any

import numpy as np

from icmape.learning.config import Config

ENOUGH = 0.4  # part of training before which a team may still know little
STUCK = 0.98  # share of episodes forced at the end from which on nobody stops


def advice(config: Config, row: dict[str, Any], plan_tau: float | None) -> list[str]:
    """Remarks on one seed at a point of training; none where nothing is wrong."""
    if row["iteration"] < ENOUGH * config.iterations:
        return []
    found = []
    accuracy, tau = _number(row, "validation_accuracy"), _number(row, "validation_tau")
    target = 1.0 - config.delta
    if config.stopping == "learned" and _number(row, "validation_forced") > STUCK:
        found.append("nobody stops before the last round: a higher dual.init, or more iterations")
    if config.cost == "dual" and _number(row, "step_cost") <= 0:
        found.append("the price of a round is 0, so nothing speaks for stopping: set dual.init")
    if accuracy < target - 0.05 and _number(row, "validation_forced") < 0.5:
        found.append(
            f"it stops at accuracy {accuracy:.2f}, far below {target:g}: a lower dual.init, or a lower inference loss "
            "(more updates, a wider network)"
        )
    if accuracy < target - 0.05 and _number(row, "validation_forced") >= 0.5:
        found.append(
            f"even the longest episodes give accuracy {accuracy:.2f}: more rounds, more iterations or a wider network"
        )
    if plan_tau is not None and accuracy >= target and tau > plan_tau + 0.05:
        found.append(
            f"its non-adaptive plan takes τ {plan_tau:.1f}, the team {tau:.1f}: more iterations, or "
            "plan.follow_prob 0.9"
        )
    return found


def _number(row: dict[str, Any], name: str) -> float:
    value = row.get(name)
    return float("nan") if value is None else float(np.asarray(value))
