"""Statistics of groups of sessions. A group has a session in each place; the recorded group is the first one.

Means alone would hide one bad session among many good ones, and faults in opposite directions. Every function treats
all groups alike, so ranks among groups stay exact.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from icmape_agent.session.ranks import ALIKE, equal_within, surprises
from icmape_agent.session.statistics import Statistic

Place = Float[np.ndarray, "groups statistics"]
Stack = Float[np.ndarray, "places groups statistics"]
ENOUGH = 2000  # simulated sessions beside one, as in a check of it alone
WORST = "surprise of the most unusual session"


class Name(NamedTuple):
    """What a statistic of groups is called."""

    name: str
    of: str  # the statistic of a session that it comes from
    unit: str


class Groups(NamedTuple):
    """A table of statistics of groups."""

    names: list[Name]
    table: Place


class Alone(NamedTuple):
    """A recorded session among the simulated ones in its place."""

    p_value: float
    surprise: float
    statistic: int  # the most surprising one


def group_statistics(places: Sequence[Place], alike: Sequence[int], own: Sequence[Statistic]) -> Groups:
    """The statistics of groups: those of the session itself, or how they are distributed over several sessions.

    `alike` has the same number for places in which simulated sessions come about in the same way.
    """
    names = [Name(statistic.name, statistic.name, statistic.unit) for statistic in own]
    stack = np.stack(places)
    if len(stack) == 1:
        return Groups(names, stack[0])
    forms: list[tuple[str, Callable[[Stack, Bool[np.ndarray, "places groups statistics"]], Place]]] = [
        ("", _means),
        (": standard deviation over sessions", _spreads),
        (": lowest session", lambda values, known: _end(values, known, -1.0)),
        (": highest session", lambda values, known: _end(values, known, 1.0)),
    ]
    known = np.isfinite(stack)
    worst = np.max([_surprises_of(stack[np.equal(alike, number)]) for number in set(alike)], axis=0)
    return Groups(
        [*(row._replace(name=row.name + form) for form, _ in forms for row in names), Name(WORST, WORST, "")],
        np.concatenate([*(of_groups(stack, known) for _, of_groups in forms), worst[:, None]], axis=1),
    )


def rank_alone(places: Sequence[Place], alike: Sequence[int], number: int) -> Alone:
    """A recorded session among simulated ones like it, as if it had been checked alone."""
    simulated = np.concatenate(
        [place[1:] for place, other in zip(places, alike, strict=True) if other == alike[number]]
    )
    enough = max(ENOUGH, len(places[number]) - 1)
    surprise = surprises(np.concatenate([places[number][:1], simulated[:enough]]))
    largest = surprise.max(axis=1, initial=0.0)
    return Alone(float(np.mean(largest >= largest[0] - ALIKE)), float(largest[0]), int(np.argmax(surprise[0])))


def _surprises_of(places: Stack) -> Float[np.ndarray, "groups"]:
    """The surprise of the most unusual session of each group in these places, among all sessions there."""
    surprise = surprises(places.reshape(-1, places.shape[2])).max(axis=1, initial=0.0)
    return surprise.reshape(places.shape[:2]).max(axis=0)


def _means(values: Stack, known: Bool[np.ndarray, "places groups statistics"]) -> Place:
    """Means over the sessions of each group, of those that define the statistic."""
    total, count = np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _spreads(values: Stack, known: Bool[np.ndarray, "places groups statistics"]) -> Place:
    """Standard deviations over sessions; zero where sessions differ by rounding only."""
    around = np.where(known, values - np.nan_to_num(_means(values, known)), 0.0)
    count = known.sum(axis=0)
    spread = np.sqrt((around**2).sum(axis=0) / np.maximum(count - 1, 1))
    size = np.where(known, np.abs(values), 0.0).max(axis=0)
    return np.where(count > 1, np.where(spread > equal_within(size), spread, 0.0), np.nan)


def _end(values: Stack, known: Bool[np.ndarray, "places groups statistics"], sign: float) -> Place:
    """The largest value of a session (`sign` 1), or the smallest (-1)."""
    largest = np.where(known, sign * values, -np.inf).max(axis=0)
    return np.where(np.isfinite(largest), sign * largest, np.nan)
