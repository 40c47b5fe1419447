"""Baselines of the caller's own: a team that `module:Class` makes of a problem and δ, or one that is given."""

import json
from dataclasses import replace

import numpy as np

from icmape.baselines.tuning import Point, every_length, levels, watch
from icmape.errors import UserError
from icmape.imports import call_own
from icmape.play.check_policy import check_own, check_policy
from icmape.play.episodes import play
from icmape.play.stop import FixedLength, Threshold
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.problem.spec import describe


def own_team(path: str, problem: Problem, delta: float) -> Team:
    """What `module:Class` makes of a problem and δ."""
    made = call_own(path, "the baseline", problem, delta)
    if not isinstance(made, Team):
        raise UserError(
            f"the baseline {path} gave {type(made).__name__}; called with (problem, delta) it must give an icmape.Team"
        )
    if describe(made.problem) != describe(problem):
        raise UserError(f"the baseline {path} gave a team for another problem than it was called with")
    check_policy(problem, made.policy, f"the policy of {path}")
    card = {**json.loads(made.card), "baseline": path, "posterior": problem.posterior}
    return replace(made, delta=delta, card=json.dumps(card, ensure_ascii=False))


def own_curve(team: Team, episodes: int, seed: int) -> list[Point]:
    """Accuracy against τ as its stop varies: every length or level from one play; a stop of its own is one point."""
    check_own(team)
    if isinstance(team.stop, FixedLength):
        return every_length(team, episodes, seed)
    if isinstance(team.stop, Threshold) or hasattr(team.policy, "level"):
        watched = watch(team, levels(team)[-1], episodes, seed)
        return [watched.at(level) for level in levels(team)]
    played = play(team, episodes, seed)
    right = played.at_stop(np.asarray(played.team.correct))
    return [Point(0, float(np.mean(played.played.stop) + 1), float(right.mean()))]
