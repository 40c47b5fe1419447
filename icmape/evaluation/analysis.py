"""Everything that can be said of a team from the episodes it has played."""

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
    """From the exact posterior to the team's, on the episodes that were judged by both."""

    nats: float  # mean Kullback-Leibler divergence over all rounds
    nats_at_stop: float
    confidence: float  # mean difference between the two confidences, whatever its sign
    episodes: int


@dataclass(frozen=True)
class Analysis:
    """What a team does, how far its confidence can be trusted, and how its agents divide the work."""

    evaluation: Evaluation
    calibration: Calibration  # over all rounds
    at_stop: Calibration
    exact_calibration: Calibration | None  # of Bayes' posterior over all rounds: what samples of this size allow
    own_calibration: Calibration | None  # of the team on the episodes that were judged by both
    distance: Distance | None
    credible: tuple[Coverage, ...]  # at the stop
    active: tuple[int, ...]  # episodes that had not ended before each round
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
            "credible": [one._asdict() for one in self.credible],
            "active": list(self.active),
            "coordination": {**who._asdict(), **lists},
            "names": {str(action): name for action, name in self.names.items()},
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Analysis":
        """What `to_dict` wrote, also after a detour through JSON."""
        who = values["coordination"]
        habits = [Habit(**{**h, "actions": tuple((int(a), int(n)) for a, n in h["actions"])}) for h in who["habits"]]
        exact, own, distance = values["exact_calibration"], values["own_calibration"], values["distance"]
        return Analysis(
            Evaluation(**values["evaluation"]),
            Calibration.from_dict(values["calibration"]),
            Calibration.from_dict(values["at_stop"]),
            exact and Calibration.from_dict(exact),
            own and Calibration.from_dict(own),
            distance and Distance(**distance),
            tuple(Coverage(**one) for one in values["credible"]),
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
    """Of played episodes; nothing is simulated."""
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
    """Pooled, as in the paper; those of one episode are told to be alike."""
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
    apart = np.abs(exact.confidence - episodes.team.confidence[:judged])[exists]
    nats = episodes.distance
    return Distance(float(nats[exists].mean()), float(episodes.at_stop(nats).mean()), float(apart.mean()), judged)


def _credible(team: Team, episodes: Episodes) -> tuple[Coverage, ...]:
    """Where answers can be listed."""
    space, truths = team.problem.hypotheses, np.asarray(episodes.played.hypothesis)
    try:
        return coverage(space, episodes.final, truths, LEVELS)
    except UserError:
        return ()
