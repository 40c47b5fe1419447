"""What is reached without learning."""

from typing import Any, NamedTuple

from icmape.evaluation.results import read_json
from paper.experiments import Setting
from paper.work_plan import DONE, NOT_RUN, SEED, THERE, Plan


class Limit(NamedTuple):
    """What a rule without learning reaches."""

    accuracy: float
    tau: float
    tau_error: float | None
    episodes: int


def read_limit(of: Setting, name: str, plan: Plan) -> Limit | None:
    """A baseline's result: of its own file, or among those measured together."""
    root = plan.root(of)
    own = plan.store.read(f"{root}/baseline-{name}.json", _question(of, plan))
    if own is not None:
        return Limit(**own)
    for file in ("baselines.json", "limits.json", "rivals.json"):
        path = plan.store.find(f"{root}/{file}")
        content = (read_json(path) if path else None) or {}
        if content.get("seed") != SEED:
            continue
        row = content.get("baselines", {}).get(name)
        if row and "tau" in row:
            return Limit(row["accuracy"], row["tau"], row.get("tau_error"), content["episodes"])
        curve = (row or {}).get("accuracy_after_each_round")
        if row and row.get("rounds") is None and curve:  # never reached: what so many rounds gave
            return Limit(curve[-1], len(curve), None, content["episodes"])
        if row and row.get("rounds") is not None:  # between two levels, where the target is reached
            return Limit(content["target"], row["rounds"] + 1, row.get("standard_error"), content["episodes"])
    return None


def _question(of: Setting, plan: Plan) -> dict[str, Any]:
    scale = plan.scale(of)
    problem = {"preset": scale.preset, **scale.arguments}
    return {"problem": problem, "data": plan.data_digest(of), "episodes": scale.baseline_episodes, "seed": SEED}


def make_limit(of: Setting, name: str, plan: Plan) -> tuple[str, str]:
    """Measure a baseline with the parameter that it chooses."""
    from icmape.baselines.registry import baseline_team

    if read_limit(of, name, plan) is not None:
        return THERE, ""
    if plan.hinders(of):
        return NOT_RUN, plan.hinders(of)
    scale = plan.scale(of)
    team = baseline_team(name, scale.problem(**plan.changes(of)), delta=0.1)
    found = team.evaluate(scale.baseline_episodes, SEED)
    value = Limit(found.accuracy, found.tau, found.tau_error, found.episodes)._asdict()
    plan.store.write(f"{plan.root(of)}/baseline-{name}.json", _question(of, plan), value)
    return DONE, ""
