"""User-defined baselines: teams that `module:Class` builds from a problem and δ, or team objects."""

import json
from dataclasses import replace

import numpy as np

from icmape.baselines.tuning import Point, every_length, every_level
from icmape.errors import UserError
from icmape.imports import call_own
from icmape.play.check_policy import check_own, check_policy
from icmape.play.episodes import play
from icmape.play.stop import FixedLength, Threshold
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.spec import describe


def own_team(path: str, problem: Problem, delta: float) -> Team:
    """The team that `module:Class` builds from a problem and δ."""
    team = call_own(path, "the baseline", problem, delta)
    if not isinstance(team, Team):
        raise UserError(
            f"the baseline {path} gave {type(team).__name__}; called with (problem, delta) it must give an icmape.Team"
        )
    if describe(team.problem) != describe(problem):
        raise UserError(f"the baseline {path} gave a team for another problem than it was called with")
    check_policy(problem, team.policy, f"the policy of {path}")
    card = {**json.loads(team.card), "baseline": path, "posterior": problem.posterior}
    return replace(team, delta=delta, card=json.dumps(card, ensure_ascii=False))


def own_curve(team: Team, episodes: int, seed: int) -> list[Point]:
    """Accuracy against τ for every length or level, from one set of episodes; one point for other stopping rules."""
    check_own(team)
    if isinstance(team.stop, FixedLength):
        return every_length(team, episodes, seed)
    if isinstance(team.stop, Threshold) or hasattr(team.policy, "level"):
        return every_level(team, episodes, seed)
    played = play(team, episodes, seed)
    right = played.at_stop(np.asarray(played.team.correct))
    return [Point(0, float(np.mean(played.played.stop) + 1), float(right.mean()))]
