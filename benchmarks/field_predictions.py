"""What `icmape.Unreliable` predicts for the field test, and how what was found compares."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np

from icmape.evaluation.robustness import sweep_point
from icmape.play.episodes import play
from icmape.play.team import Team
from icmape.problem import HypothesisSpace, Problem
from icmape.problem.adapter import Adapter
from icmape_agent.session.crew import plain

if TYPE_CHECKING:
    from benchmarks.field import Outcome, Plan

WORLDS = 7_000  # folded into the key of the worlds


def late_rate(outcomes: Sequence["Outcome"]) -> float:
    """Rate of late bits, independent for each agent, at which as many episodes have a late agent as there were."""
    others, late = np.array([o.others for o in outcomes]), sum(o.tau > o.session_tau for o in outcomes)
    if late == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(50):
        rate = (low + high) / 2
        low, high = (rate, high) if (1 - (1 - rate) ** others).sum() < late else (low, rate)
    return high


class SameWorlds(Adapter):
    """The worlds of `world_of`, all equally likely, with new readings."""

    problem: Problem
    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: HypothesisSpace
    seed: int = eqx.field(static=True)
    count: int = eqx.field(static=True)

    def __init__(self, problem: Problem, seed: int, count: int):
        self.problem, self.seed, self.count = problem, seed, count
        self.agents, self.actions, self.horizon = problem.agents, problem.actions, problem.horizon
        self.hypotheses = problem.hypotheses

    def sample(self, *, key: Any) -> Any:
        """One of them."""
        number = jax.random.randint(key, (), 0, self.count)
        once = jax.random.fold_in(jax.random.key(self.seed + WORLDS), number)
        return self.problem.sample(key=jax.random.split(once, 3)[0])


def predicted(team: Team, rates: dict[str, float], episodes: int, plan: "Plan") -> dict[str, Any]:
    """What simulated episodes with these rates give in the worlds of a plan."""
    same = replace(team, problem=SameWorlds(team.problem, plan.seed, plan.episodes)).under(**rates)
    point = sweep_point(rates, play(same, episodes, plan.seed, exact=0), team.problem.horizon)
    return plain(point._asdict())


def against_predictions(team: Team, found: dict[str, Any], episodes: int, plan: "Plan") -> dict[str, Any]:
    """What was found, with the predictions and the tests: with the readings of late agents, and of the sessions."""
    count = found["counts"]["episodes"] - found["counts"]["without_end"]
    rates, session = found["rates"], found["session"]
    expected = predicted(team, rates, episodes, plan)
    in_time = predicted(team, {**rates, "late": 0.0}, episodes, plan)
    own = {**session, "predicted": in_time, "consistency": consistency(session, count, in_time)}
    return {**found, "predicted": expected, "consistency": consistency(found, count, expected), "session": own}


def consistency(found: dict[str, Any], count: int, expected: dict[str, Any]) -> dict[str, Any]:
    """Two-sided tests of accuracy and τ. Each is below 0.01 in one of 100 runs if the prediction is right."""
    from scipy import stats

    simulated = expected["episodes"]
    pooled = (found["accuracy"] * count + expected["accuracy"] * simulated) / (count + simulated)
    error = math.sqrt(pooled * (1 - pooled) * (1 / count + 1 / simulated))
    by = {
        "accuracy": (found["accuracy"] - expected["accuracy"]) / max(error, 1e-12),
        "tau": (found["tau"] - expected["tau"]) / math.hypot(found["tau_error"], expected["tau_error"]),
    }
    return {name: {"z": z, "p": float(2 * stats.norm.sf(abs(z)))} for name, z in by.items()}


def rows(asked: dict[str, Any], value: dict[str, Any]) -> list[str]:
    """The table of docs/reference/mqtt.md."""
    counts, rates = value["counts"], value["rates"]
    messages = ", ".join(f"{value['messages'][name]:,}" for name in ("doubled", "delayed", "dropped", "cut"))
    shares = (rates["lost"], value["late"]["agents"], value["late"]["episodes"], rates["late"])
    lost, late, episodes, predicting = (f"{100 * share:.1f} %" for share in shares)
    acknowledged = f"{counts['acknowledged']:,}; {counts['acknowledged_lost']}"
    return [
        f"| {counts['episodes']} episodes, rounds of {asked['every']:g} s | |",
        "|---|---|",
        f"| kills of agents; of the coordinator | {counts['kills']}; {counts['coordinator_kills']} |",
        "| messages; of these, doubled, delayed, dropped, with the connection cut | "
        f"{value['messages']['messages']:,}; {messages} |",
        f"| acknowledged readings and misses; of these, lost | {acknowledged} |",
        f"| entries that were not acknowledged in the end; refused | {counts['unacknowledged']}; {counts['refused']} |",
        f"| entries in the coordinator's journal that no agent made | {counts['unknown']} |",
        f"| episodes without an end | {counts['without_end']} |",
        f"| rounds of agents without a reading | {lost} |",
        f"| agents that heard the stop late; episodes with such an agent | {late}; {episodes} |",
        f"| rate of late bits that gives as many such episodes if each agent is late on its own | {predicting} |",
        *compared_rows("with the readings of late agents", value),
        *compared_rows("of the sessions, which do not count them", value["session"]),
    ]


def compared_rows(which: str, value: dict[str, Any]) -> list[str]:
    """τ and accuracy beside their predictions."""
    rows = []
    for name, label, digits in (("tau", "τ", 2), ("accuracy", "accuracy", 3)):
        numbers = (value[name], *value[f"{name}_interval"], value["predicted"][name])
        found, low, high, expected = (f"{number:.{digits}f}" for number in numbers)
        p_value = f"{value['consistency'][name]['p']:.2g}"
        what = f"{label} {which}; predicted; p-value of the difference"
        rows.append(f"| {what} | {found} [{low}, {high}]; {expected}; {p_value} |")
    return rows
