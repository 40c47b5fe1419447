"""Diagnosis of a team: the rounds lost by its inference, its stops and its sampling.

Each part is replaced by the best alternative, at equal accuracy; the rounds that the replacement saves are the loss of
the part. Accuracy is the mean confidence of the exact posterior at the stop, which has the same expectation as the
fraction of right answers and a much smaller standard error.
"""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from icmape.compiling import use_compilation_cache
from icmape.errors import UserError
from icmape.io import circumstances
from icmape.play.episodes import Episodes, check_seed, play
from icmape.play.inference import ExactInference
from icmape.play.stop import FixedLength, LearnedStop, Threshold
from icmape.play.team import Team

CLOCK = 0.9  # fraction of stops in one round, above which a team counts as stopping by the clock
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """A team with one part replaced. `saves` is the number of rounds that the replacement saves."""

    what: str
    accuracy: float  # fraction of right answers
    expected: float  # mean confidence of the exact posterior
    tau: float
    saves: float


@dataclass(frozen=True)
class Diagnosis:
    """The rows of a diagnosis, and statistics of the stops."""

    rows: tuple[Row, ...]
    tau_spread: float  # standard deviation between episodes
    commonest_stop: float  # fraction of episodes that stop in the most common round
    by_the_clock: bool
    stoppers: dict[int, float]  # fraction of episodes (without forced stops) by number of agents that stopped
    left_out: dict[str, str]  # rows that could not be computed, and why
    episodes: int
    seed: int
    provenance: dict[str, Any]
    team: dict[str, Any]  # provenance

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        width = max(len(row.what) for row in self.rows)
        lines = [f"{'':{width}}  accuracy  expected       τ   saves"]
        lines += [
            f"{row.what:{width}}  {row.accuracy:8.4f}  {row.expected:8.4f}  {row.tau:6.2f}  {row.saves:6.2f}"
            for row in self.rows
        ]
        lines += [f"{what}: left out, {why}" for what, why in self.left_out.items()]
        kind = "by the clock" if self.by_the_clock else "not by the clock"
        lines.append(
            f"τ has a standard deviation of {self.tau_spread:.2f}; {self.commonest_stop:.0%} of episodes stop in the "
            f"commonest round: {kind}"
        )
        counts = ", ".join(f"{count} in {share:.1%}" for count, share in self.stoppers.items())
        lines.append(f"agents that chose STOP at the end: {counts}")
        lines.append(
            "expected: accuracy by the exact posterior, about the same in all rows; saves: rounds fewer than the team"
        )
        return "\n".join([*lines, f"{self.episodes:,} worlds a row, seed {self.seed}"])


def diagnose(team: Team, *, episodes: int = 10_000, seed: int = 0, tell: Tell | None = None) -> Diagnosis:
    """Replace the parts of a team one by one. `tell` is called with the name of each row."""
    if team.problem.posterior != "exact":
        raise UserError(
            f"a diagnosis needs the exact posterior, and {type(team.problem).__name__} has {team.problem.posterior}: "
            "there is nothing to measure the inference by"
        )
    if not isinstance(team.stop, LearnedStop):
        raise UserError("a diagnosis is for teams whose agents stop by themselves")
    if episodes < 100:
        raise UserError(f"a diagnosis needs at least 100 worlds; given {episodes}")
    check_seed(seed)
    use_compilation_cache()
    report = tell or (lambda what: None)
    report("the team")
    played = play(team, episodes, seed, exact=episodes)
    answers = Point.of(played)
    accuracy = float(played.at_stop(played.team.correct).mean())
    rows = [Row("the team", accuracy, answers.expected, answers.tau, 0.0)]
    rows.append(Row("inference: the exact posterior answers", *answers, 0.0))
    replaced, left_out = replacements(team, answers.expected, episodes, seed, report)
    for what, point in replaced:
        rows.append(Row(what, *point, answers.tau - point.tau))
    counts = np.bincount(played.played.stop)
    share = float(counts.max() / counts.sum())
    return Diagnosis(
        tuple(rows),
        float(np.std(played.played.stop)),
        share,
        share >= CLOCK,
        who_stops(played, team.problem.actions),
        left_out,
        episodes,
        seed,
        circumstances(),
        json.loads(team.card),
    )


class Point(NamedTuple):
    """Accuracy of the answers of the exact posterior, and τ."""

    accuracy: float
    expected: float
    tau: float

    @staticmethod
    def of(played: Episodes) -> "Point":
        """The point of played episodes."""
        exact = played.exact
        assert exact is not None  # the problem has an exact posterior
        right, sure = (float(played.at_stop(column).mean()) for column in (exact.correct, exact.confidence))
        return Point(right, sure, float(played.played.stop.mean() + 1))


def replacements(
    team: Team, accuracy: float, episodes: int, seed: int, tell: Tell
) -> tuple[list[tuple[str, Point]], dict[str, str]]:
    """The team with other stops, and baselines, each at this accuracy; and the rows that are impossible."""
    from icmape.baselines.registry import baseline_team, rivals
    from icmape.baselines.tuning import tune, with_level

    wanted = dataclasses.replace(team, inference=ExactInference(), delta=1 - accuracy)
    replaced, left_out = [], {}
    name = "stop: on everyone's data, by the exact posterior"
    tell(name)
    watching = dataclasses.replace(wanted, stop=Threshold(accuracy))
    level = tune(watching)
    if level is None:
        left_out[name] = "it does not get so accurate"
    else:
        replaced.append((name, Point.of(play(with_level(watching, level), episodes, seed))))
    name = "stop: by the clock"
    tell(name)
    clock = clock_point(wanted, accuracy, episodes, seed)
    if clock is None:
        left_out[name] = "it does not get so accurate"
    else:
        replaced.append((name, clock))
    for baseline in rivals(team.problem):
        name = f"sampling and stop: {baseline}"
        tell(name)
        try:
            rival = baseline_team(baseline, team.problem, delta=1 - accuracy)
        except UserError as error:  # it does not reach this accuracy
            left_out[name] = str(error)
            continue
        replaced.append((name, Point.of(play(rival, episodes, seed))))
    return replaced, left_out


def clock_point(team: Team, accuracy: float, episodes: int, seed: int) -> Point | None:
    """The team with a fixed length, interpolated between the two lengths around this accuracy."""
    longest = team.problem.horizon - 1
    played = play(dataclasses.replace(team, stop=FixedLength(longest)), episodes, seed)
    right, sure = played.team.correct.mean(axis=0), played.team.confidence.mean(axis=0)
    if sure.max() < accuracy:
        return None
    after = int(np.argmax(sure >= accuracy))
    if after == 0:
        return Point(float(right[0]), float(sure[0]), 1.0)
    part = float((accuracy - sure[after - 1]) / (sure[after] - sure[after - 1]))
    return Point(float(right[after - 1] + part * (right[after] - right[after - 1])), accuracy, after + part)


def who_stops(played: Episodes, stop: int) -> dict[int, float]:
    """Fractions of episodes by the number of agents that chose STOP, without forced stops."""
    actions = np.asarray(played.played.actions)
    last = played.at_stop(actions)[np.asarray(played.played.stop) < actions.shape[1] - 1]
    counts = np.sum(last == stop, axis=1)
    return {int(n): float(np.mean(counts == n)) for n in range(1, last.shape[1] + 1)} if counts.size else {}
