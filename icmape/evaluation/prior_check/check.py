"""The check: one p-value, and each statistic beside its simulated range."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from icmape.errors import UserError
from icmape.evaluation.prior_check.groups import Alone, Name, Place, group_statistics, rank_alone
from icmape.evaluation.prior_check.recorded import Recorded, read_sessions
from icmape.evaluation.prior_check.simulated import alike, simulate
from icmape.evaluation.prior_check.words import words_of
from icmape.play.missing import says_missing
from icmape.play.team import Team
from icmape.problem import check_worlds
from icmape_agent.session.ranks import rank_first, two_sided
from icmape_agent.session.statistics import Statistic, statistics

WORLDS = 2000
GROUPS = 500  # of sessions, at least, if the number of worlds is not given
LEVEL = 0.01
ALONE = 0.01  # what the p-value of a session alone is compared with in words
MOST_SESSIONS = 10  # in the table of the terminal
BAND = 0.95


@dataclass(frozen=True)
class Row:
    """One statistic of the recorded sessions, and what simulated groups have."""

    name: str
    of: str  # the statistic of a session whose mean, spread or extreme over the sessions this is
    unit: str
    recorded: float
    median: float
    low: float  # ends of the band that holds 95 % of the simulated groups
    high: float
    mean: float
    deviation: float  # standard deviation over the simulated groups
    p_value: float  # two-sided, of this statistic alone
    surprise: float  # -log of the probability of a value as far out

    @property
    def standardized(self) -> float:
        """Standard deviations from the simulated mean."""
        apart = self.recorded - self.mean
        return apart / self.deviation if self.deviation > 0 else float(np.copysign(np.inf, apart)) if apart else 0.0

    def __str__(self) -> str:
        """The statistic in a sentence."""
        unit = f" {self.unit}" if self.unit else ""
        band = f"{number(self.low)} to {number(self.high)}{unit}"
        out = f"{abs(self.standardized):.1f} standard deviations {'above' if self.standardized > 0 else 'below'}"
        odd = "no simulated group has another value" if self.deviation == 0 else out
        return f"{self.name}: {number(self.recorded)}{unit}; 95 % of simulated: {band} ({odd})"


@dataclass(frozen=True)
class PriorCheck:
    """Whether recorded sessions look like simulated ones."""

    p_value: float
    level: float
    groups: int
    seed: int
    sessions: tuple[dict[str, Any], ...]  # each with its p-value alone, and its most surprising statistic
    rows: tuple[Row, ...]  # the most surprising first
    remarks: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the p-value is not below the level."""
        return self.p_value >= self.level

    def __str__(self) -> str:
        """The verdict, the statistics that deviate most, and what is approximate."""
        count = len(self.sessions)
        these = "this session" if count == 1 else f"these {count} sessions"
        trained = "the worlds that the team was trained on"
        unlike = f"WARNING: {these} {'does' if count == 1 else 'do'} not look like {trained}"
        verdict = f"fits: nothing in {these} is unusual for {trained}" if self.fits else unlike
        p_value = f"p = {self.p_value:.3g}, level {self.level:g}, {self.groups:,} simulated groups"
        rows = self.most_surprising()
        shown = [row for row in rows[:3] if row.p_value < 0.1] if self.fits else rows[:5]
        said = ["the statistics that deviate most:", *(f"  {row}" for row in shown)] if shown else []
        notes = [f"note: {remark}" for remark in self.remarks]
        return "\n".join([f"{verdict} ({p_value})", *said, *self._sessions_alone(), *notes])

    def most_surprising(self) -> list[Row]:
        """The most surprising form of each statistic, such as its mean or its spread over the sessions."""
        best: dict[str, Row] = {}
        for row in self.rows:
            best.setdefault(row.of, row)
        return list(best.values())

    def by_p_value(self) -> list[dict[str, Any]]:
        """The sessions, the least likely first."""
        return sorted(self.sessions, key=lambda row: (row["p_value"], -row["surprise"]))

    def _sessions_alone(self) -> list[str]:
        """A table of several sessions, each as if it had been checked alone."""
        if len(self.sessions) == 1:
            return []
        rows = self.by_p_value()
        table = [
            f"  {row['p_value']:<8.3g} {row['folder']}" + (f": {row['deviates']}" if row["p_value"] < 0.1 else "")
            for row in rows[:MOST_SESSIONS]
        ]
        more = [f"  and {len(rows) - MOST_SESSIONS} more with larger p"] if len(rows) > MOST_SESSIONS else []
        expected = f"{ALONE:g} or less in {ALONE:.0%} of good sessions"
        return [
            f"p of each session alone, the smallest first ({expected}; the verdict counts all of them):",
            *table,
            *more,
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON values; NaN and infinity are None."""
        rows = [{**asdict(row), "standardized": row.standardized} for row in self.rows]
        finite = [{k: v if isinstance(v, str) or np.isfinite(v) else None for k, v in row.items()} for row in rows]
        about = {"p_value": self.p_value, "level": self.level, "fits": self.fits, "groups": self.groups}
        return {
            **about,
            "seed": self.seed,
            "sessions": list(self.sessions),
            "statistics": finite,
            "notes": list(self.remarks),
        }


def check_prior(
    team: Team,
    folders: Sequence[str],
    *,
    worlds: int | None = None,
    level: float = LEVEL,
    seed: int = 0,
    tick: Callable[[int], None] | None = None,
) -> PriorCheck:
    """Compare the sessions in these folders with sessions that the team plays in fresh worlds of its prior.

    `worlds` is the number of simulated sessions, by default 2,000, or 500 for each recorded one if that is more.
    """
    check_worlds(team.problem)
    sessions = read_sessions(team, list(folders))
    return compare(team, sessions, worlds=worlds, level=level, seed=seed, tick=tick)


def worlds_for(sessions: int) -> int:
    """The default number of simulated sessions."""
    return max(WORLDS, GROUPS * sessions)


def compare(
    team: Team,
    sessions: Sequence[Recorded],
    *,
    worlds: int | None = None,
    level: float = LEVEL,
    seed: int = 0,
    tick: Callable[[int], None] | None = None,
) -> PriorCheck:
    """As `check_prior`, with sessions that were read."""
    groups = (worlds or worlds_for(len(sessions))) // len(sessions)
    if not 0 < level < 1 or groups + 1 < 1 / level:
        needed = int(np.ceil(1 / level)) * len(sessions) if 0 < level < 1 else 0
        raise UserError(
            f"a level of {level:g} cannot be reached with {groups} groups of simulated sessions: give --worlds "
            f"{needed} or more"
            if needed
            else f"the level lies between 0 and 1; given {level:g}"
        )
    words = words_of(team.problem)
    own = [statistics(row.sessions, words) for row in sessions]
    values = [np.array([statistic.values[0] for statistic in row])[None] for row in own]
    simulated = simulate(team, sessions, words, groups, seed, tick)
    many = min(len(rows) for rows in simulated)
    if many + 1 < 1 / level:
        raise UserError(
            f"of {groups} simulated sessions only {many} last as long as a recorded one that the team did not end: "
            f"give more --worlds, or look at the session after it ended"
        )
    places = [np.concatenate([a, b[:many]]) for a, b in zip(values, simulated, strict=True)]
    same = alike(team, sessions)
    groups_of = group_statistics(places, same, own[0])
    ranked = rank_first(groups_of.table)
    rows = [
        _row(name, column, surprise)
        for name, column, surprise in zip(groups_of.names, groups_of.table.T, ranked.surprise, strict=True)
        if np.isfinite(column).any()
    ]
    rows.sort(key=lambda row: -row.surprise)
    about = tuple(_about(row, rank_alone(places, same, i), places[i], own[0]) for i, row in enumerate(sessions))
    return PriorCheck(ranked.p_value, level, many, seed, about, tuple(rows), _remarks(team, sessions))


def _about(session: Recorded, alone: Alone, place: Place, own: Sequence[Statistic]) -> dict[str, Any]:
    """What is said of one session."""
    statistic, column = own[alone.statistic], place[:, alone.statistic]
    deviates = str(_row(Name(statistic.name, statistic.name, statistic.unit), column, alone.surprise))
    return {**session.about, "p_value": alone.p_value, "surprise": alone.surprise, "deviates": deviates}


def _row(name: Name, column: Float[np.ndarray, "groups"], surprise: float) -> Row:
    simulated = column[1:][np.isfinite(column[1:])]
    ends = ((1 - BAND) / 2, 0.5, (1 + BAND) / 2)
    low, median, high = np.quantile(simulated, ends) if len(simulated) else (np.nan,) * 3
    mean, deviation = (float(f(simulated)) if len(simulated) else np.nan for f in (np.mean, np.std))
    numbers = (column[0], median, low, high, mean, deviation, two_sided(column), surprise)
    return Row(*name, *map(float, numbers))


def _remarks(team: Team, sessions: Sequence[Recorded]) -> tuple[str, ...]:
    """What makes the p-value approximate."""
    remarks = []
    if overruled := [row for row in sessions if row.overruled]:
        count = sum(row.overruled for row in overruled)
        remarks.append(
            f"in {len(overruled)} of {len(sessions)} sessions agents did not do what the team chose ({count} actions): "
            "readings were simulated along the recorded actions, as if these did not depend on readings (approximate)"
        )
    if cut := [row for row in sessions if not row.ended and not row.overruled]:
        remarks.append(
            f"{len(cut)} of {len(sessions)} sessions were not ended by the team: they are compared with simulated ones "
            "that last as long, up to the same round"
        )
    if left_out := sum(row.left_out for row in sessions):
        remarks.append(
            f"{left_out} round{' does' if left_out == 1 else 's do'} not count in the answers, and the same were left "
            "out of simulated sessions"
        )
    missing = sum(row.missing for row in sessions)
    if missing and not says_missing(team.problem):
        remarks.append(
            f"{missing} readings are missing: the same ones were left out of simulated sessions, whose agents had them "
            "(approximate)"
        )
    return tuple(remarks)


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}" if np.isfinite(value) else "not defined"
