"""Results of baselines that do not learn."""

from typing import Any, NamedTuple

from icmape.evaluation.results import read_json
from paper.experiments import Setting
from paper.work_plan import DONE, NOT_RUN, SEED, THERE, Plan


class Limit(NamedTuple):
    """Result of a rule that does not learn."""

    accuracy: float
    tau: float
    tau_error: float | None
    episodes: int


def read_limit(setting: Setting, name: str, plan: Plan) -> Limit | None:
    """Result of a baseline, from its own file or from a file with several baselines."""
    root = plan.root(setting)
    stored = plan.store.read(f"{root}/baseline-{name}.json", limit_question(setting, plan))
    if stored is not None:
        return Limit(**stored)
    for file in ("baselines.json", "limits.json", "rivals.json"):
        path = plan.store.find(f"{root}/{file}")
        content = (read_json(path) if path else None) or {}
        if content.get("seed") != SEED:
            continue
        row = content.get("baselines", {}).get(name)
        if row and "tau" in row:
            return Limit(row["accuracy"], row["tau"], row.get("tau_error"), content["episodes"])
        curve = (row or {}).get("accuracy_after_each_round")
        if row and row.get("rounds") is None and curve:  # the target was not reached: the last round's accuracy
            return Limit(curve[-1], len(curve), None, content["episodes"])
        if row and row.get("rounds") is not None:  # interpolated between two levels
            return Limit(content["target"], row["rounds"] + 1, row.get("standard_error"), content["episodes"])
    return None


def limit_question(setting: Setting, plan: Plan) -> dict[str, Any]:
    """Key of a baseline's result."""
    scale = plan.scale(setting)
    problem = {"preset": scale.preset, **scale.arguments}
    return {"problem": problem, "data": plan.data_digest(setting), "episodes": scale.baseline_episodes, "seed": SEED}


def make_limit(setting: Setting, name: str, plan: Plan) -> tuple[str, str]:
    """Evaluate a baseline with its tuned parameter."""
    from icmape.baselines.registry import baseline_team

    if read_limit(setting, name, plan) is not None:
        return THERE, ""
    if plan.hinders(setting):
        return NOT_RUN, plan.hinders(setting)
    scale = plan.scale(setting)
    team = baseline_team(name, scale.problem(**plan.changes(setting)), delta=0.1)
    evaluation = team.evaluate(scale.baseline_episodes, SEED)
    value = Limit(evaluation.accuracy, evaluation.tau, evaluation.tau_error, evaluation.episodes)._asdict()
    plan.store.write(f"{plan.root(setting)}/baseline-{name}.json", limit_question(setting, plan), value)
    return DONE, ""
