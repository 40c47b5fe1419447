"""Curves of accuracy against τ, of teams and of baselines: read if they are stored, and else computed and stored.

A curve has its own file and its own format, so analyses that were stored without curves are still read.
"""

from typing import Any

from icmape.evaluation.baseline_curves import baseline_stop_curve
from icmape.evaluation.stop_curves import StopCurve, stop_curve
from icmape.play.team_files import load
from paper.experiments import Method, Setting
from paper.findings import as_method, question
from paper.limits import limit_question
from paper.work_plan import DONE, NO_TEAM, NOT_RUN, SEED, THERE, Plan, team_files

DELTA = 0.1
FORMAT = 1


def curve_name(folder: str, seed: int) -> str:
    """File name of the curve of a team."""
    return f"{folder}/curve-{seed}.json"


def rule_curve_name(root: str, name: str) -> str:
    """File name of the curve of a baseline."""
    return f"{root}/curve-{name}.json"


def _curve_question(setting: Setting, method: Method, plan: Plan, seed: int) -> dict[str, Any]:
    path, level = team_files(setting, method, plan).get(seed), {} if method.level is None else {"level": method.level}
    episodes = plan.scale(setting).curve_episodes
    return question(setting, plan, path, format=FORMAT, episodes=episodes, seed=SEED, delta=DELTA, **level)


def read_curve(setting: Setting, method: Method, plan: Plan, seed: int) -> StopCurve | None:
    """A stored curve of a team."""
    name = curve_name(plan.folder(setting, method), seed)
    stored = plan.store.read(name, _curve_question(setting, method, plan, seed))
    return None if stored is None else StopCurve.from_dict(stored)


def make_curve(setting: Setting, method: Method, plan: Plan, seed: int) -> tuple[str, str]:
    """Play a team past its stop."""
    if read_curve(setting, method, plan, seed) is not None:
        return THERE, ""
    path = team_files(setting, method, plan).get(seed)
    if path is None or plan.hinders(setting):
        return NOT_RUN, plan.hinders(setting) or NO_TEAM
    team = as_method(method, load(path, **plan.changes(setting)))
    curve = stop_curve(team, episodes=plan.scale(setting).curve_episodes, seed=SEED, target=1 - DELTA)
    name = curve_name(plan.folder(setting, method), seed)
    plan.store.write(name, _curve_question(setting, method, plan, seed), curve.to_dict())
    return DONE, ""


def _rule_question(setting: Setting, plan: Plan) -> dict[str, Any]:
    episodes = plan.scale(setting).curve_episodes
    return {**limit_question(setting, plan), "episodes": episodes, "format": FORMAT, "delta": DELTA}


def read_rule_curve(setting: Setting, name: str, plan: Plan) -> StopCurve | None:
    """A stored curve of a baseline."""
    stored = plan.store.read(rule_curve_name(plan.root(setting), name), _rule_question(setting, plan))
    return None if stored is None else StopCurve.from_dict(stored)


def make_rule_curve(setting: Setting, name: str, plan: Plan) -> tuple[str, str]:
    """Play a baseline past its stop, in the worlds of the teams."""
    if read_rule_curve(setting, name, plan) is not None:
        return THERE, ""
    if plan.hinders(setting):
        return NOT_RUN, plan.hinders(setting)
    scale = plan.scale(setting)
    problem = scale.problem(**plan.changes(setting))
    curve = baseline_stop_curve(name, problem, delta=DELTA, episodes=scale.curve_episodes, seed=SEED)
    plan.store.write(rule_curve_name(plan.root(setting), name), _rule_question(setting, plan), curve.to_dict())
    return DONE, ""
