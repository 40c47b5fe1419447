"""All statistics of a team from its episodes."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from icmape.errors import UserError
from icmape.evaluation.calibration import Calibration, calibrate
from icmape.evaluation.coordination import Coordination, Habit, JointAction, StopSet, coordination, still_active
from icmape.evaluation.coverage import Coverage, coverage
from icmape.evaluation.metrics import Evaluation, summarise
from icmape.play.episodes import Episodes, Judged
from icmape.play.team import Team

LEVELS = (0.8, 0.9, 0.95)  # of credible sets


class Distance(NamedTuple):
    """Difference of the team's posterior from the exact one, on the episodes that were judged by both."""

    nats: float  # mean Kullback-Leibler divergence over all rounds
    nats_at_stop: float
    confidence: float  # mean absolute difference of the two confidences
    episodes: int


@dataclass(frozen=True)
class Analysis:
    """Accuracy, calibration, credible sets and coordination of a team."""

    evaluation: Evaluation
    calibration: Calibration  # over all rounds
    at_stop: Calibration
    exact_calibration: Calibration | None  # of the exact posterior over all rounds: the sampling noise at this size
    own_calibration: Calibration | None  # of the team on the episodes that were judged by both
    distance: Distance | None
    credible: tuple[Coverage, ...]  # at the stop
    active: tuple[int, ...]  # episodes that reach each round
    coordination: Coordination
    names: dict[int, str]  # of the actions in it

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        who = self.coordination
        lists = {name: [row._asdict() for row in getattr(who, name)] for name in ("joint", "habits", "stops")}
        return {
            "evaluation": self.evaluation.to_dict(),
            "calibration": self.calibration.to_dict(),
            "at_stop": self.at_stop.to_dict(),
            "exact_calibration": self.exact_calibration and self.exact_calibration.to_dict(),
            "own_calibration": self.own_calibration and self.own_calibration.to_dict(),
            "distance": self.distance and self.distance._asdict(),
            "credible": [row._asdict() for row in self.credible],
            "active": list(self.active),
            "coordination": {**who._asdict(), **lists},
            "names": {str(action): name for action, name in self.names.items()},
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Analysis":
        """The inverse of `to_dict`, also for values read from JSON."""
        who = values["coordination"]
        habits = [Habit(**{**h, "actions": tuple((int(a), int(n)) for a, n in h["actions"])}) for h in who["habits"]]
        exact, of_team, distance = values["exact_calibration"], values["own_calibration"], values["distance"]
        return Analysis(
            Evaluation(**values["evaluation"]),
            Calibration.from_dict(values["calibration"]),
            Calibration.from_dict(values["at_stop"]),
            exact and Calibration.from_dict(exact),
            of_team and Calibration.from_dict(of_team),
            distance and Distance(**distance),
            tuple(Coverage(**row) for row in values["credible"]),
            tuple(values["active"]),
            Coordination(
                who["stop"],
                tuple(JointAction(**{**row, "actions": tuple(row["actions"])}) for row in who["joint"]),
                tuple(habits),
                tuple(StopSet(tuple(row["agents"]), row["episodes"]) for row in who["stops"]),
                who["voluntary"],
                who["episodes"],
            ),
            {int(action): name for action, name in values["names"].items()},
        )


def analyse(team: Team, episodes: Episodes, seed: int) -> Analysis:
    """Analyse played episodes, without further simulation."""
    stop = np.asarray(episodes.played.stop)
    inner = team.problem.unwrapped
    who = coordination(team.problem.agent_actions(episodes.played.actions), stop, inner.actions, inner.horizon)
    done = {action for habit in who.habits for action, _ in habit.actions} | {
        a for row in who.joint for a in row.actions
    }
    return Analysis(
        summarise(team, episodes, seed),
        _over_rounds(episodes, episodes.team),
        _at_stop(episodes),
        None if episodes.exact is None else _over_rounds(episodes, episodes.exact),
        None if episodes.exact is None else _over_rounds(episodes, _first(episodes.team, len(episodes.exact.correct))),
        _distance(episodes),
        _credible(team, episodes),
        tuple(still_active(stop)),
        who,
        {action: "STOP" if action == inner.actions else inner.action_name(action) for action in sorted(done)},
    )


def _over_rounds(episodes: Episodes, judged: Judged) -> Calibration:
    """Calibration over all rounds, as in the paper; answers of one episode are treated as dependent."""
    exists = episodes.exists[: len(judged.correct)]
    which = np.broadcast_to(np.arange(len(exists))[:, None], exists.shape)[exists]
    sure, right, loss = (column[exists] for column in judged)
    return calibrate(sure, right, loss, which)


def _first(judged: Judged, count: int) -> Judged:
    return Judged(*(column[:count] for column in judged))


def _at_stop(episodes: Episodes) -> Calibration:
    sure, right, loss = map(episodes.at_stop, episodes.team)
    return calibrate(sure, right, loss)


def _distance(episodes: Episodes) -> Distance | None:
    exact = episodes.exact
    if exact is None or episodes.distance is None:
        return None
    judged = len(exact.correct)
    exists = episodes.exists[:judged]
    gap = np.abs(exact.confidence - episodes.team.confidence[:judged])[exists]
    nats = episodes.distance
    return Distance(float(nats[exists].mean()), float(episodes.at_stop(nats).mean()), float(gap.mean()), judged)


def _credible(team: Team, episodes: Episodes) -> tuple[Coverage, ...]:
    """Coverage of credible sets; empty if answers cannot be enumerated."""
    space, truths = team.problem.hypotheses, np.asarray(episodes.played.hypothesis)
    try:
        return coverage(space, episodes.final, truths, LEVELS)
    except UserError:
        return ()
