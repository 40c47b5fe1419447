"""Statistics of sessions that hold for any problem. Readings that are missing are left out.

A statistic that a session does not define, such as the mean reading of an action that nobody took, is NaN.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

CONFIDENCE, SHARE = "confidence at the stop", "share of "  # the latter begins names of statistics of actions
MOST = 24  # actions or agents that have statistics of their own


class Sessions(NamedTuple):
    """What agents did and read, in sessions of one problem; rounds after the stop have no readings."""

    actions: np.ndarray  # whole numbers (sessions, rounds, agents)
    readings: Sequence[np.ndarray]  # of each part of a reading (sessions, rounds, agents, elements)
    acted: np.ndarray  # true or false (sessions, rounds, agents)
    arrived: np.ndarray  # the same
    rounds: np.ndarray  # before the stop (sessions)
    confidence: np.ndarray  # at the stop (sessions)


class Words(NamedTuple):
    """What agents, actions and the parts of readings are called."""

    agent: str
    actions: Sequence[str]
    parts: Sequence[tuple[str, str]]  # label and unit
    fails: bool  # whether readings get lost in the worlds of the problem


class Statistic(NamedTuple):
    """A name with its unit, and the value in each session."""

    name: str
    unit: str
    values: np.ndarray


def statistics(sessions: Sessions, words: Words) -> list[Statistic]:
    """All statistics, in an order that depends on the problem only."""
    parts = zip(words.parts, sessions.readings, strict=True)
    begun = np.arange(sessions.actions.shape[1]) < sessions.rounds[:, None]
    came = _mean(sessions.arrived, np.broadcast_to(begun[..., None], sessions.arrived.shape), (1, 2))
    rows = [
        *(row for (label, unit), values in parts for row in _of_readings(label, unit, values, sessions, words)),
        *_of_actions(sessions, words),
        *([Statistic("share of readings that arrived", "", came)] if words.fails else []),
        Statistic("rounds before the stop", "rounds", sessions.rounds.astype(np.float64)),
        Statistic(CONFIDENCE, "", sessions.confidence.astype(np.float64)),
    ]
    return [Statistic(name, unit, _without_dust(values)) for name, unit, values in rows]


def _of_readings(label: str, unit: str, values: np.ndarray, sessions: Sessions, words: Words) -> Iterator[Statistic]:
    """Statistics of one part of the readings (sessions, rounds, agents, elements)."""
    values = values.astype(np.float64)
    here = sessions.arrived
    each, every = values.mean(axis=3), np.broadcast_to(here[..., None], values.shape)
    mean = _mean(values, every, (1, 2, 3))
    square = _mean((values - mean[:, None, None, None]) ** 2, every, (1, 2, 3))
    any_here = here.any(axis=(1, 2))
    least = np.where(every, values, np.inf).min(axis=(1, 2, 3), initial=np.inf)
    most = np.where(every, values, -np.inf).max(axis=(1, 2, 3), initial=-np.inf)
    yield Statistic(f"mean of {label}", unit, mean)
    yield Statistic(f"standard deviation of {label}", unit, np.sqrt(square))
    yield Statistic(f"smallest {label}", unit, np.where(any_here, least, np.nan))
    yield Statistic(f"largest {label}", unit, np.where(any_here, most, np.nan))
    following = here[:, 1:] & here[:, :-1]
    related = _correlation(each[:, :-1], each[:, 1:], following)
    yield Statistic(f"correlation of successive {label} of one {words.agent}", "", related)
    if values.shape[3] > 1:
        yield Statistic(f"spread of {label} within a reading", unit, _mean(values.std(axis=3), here, (1, 2)))
    if values.shape[2] > 1:
        spread, together = _spread(each, here), here.sum(axis=2) > 1
        yield Statistic(f"spread of {label} between {words.agent}s in a round", unit, _mean(spread, together, (1,)))
        if values.shape[2] <= MOST:
            for agent in range(values.shape[2]):
                own = _mean(each[:, :, agent], here[:, :, agent], (1,))
                yield Statistic(f"mean of {label} of {words.agent} {agent + 1}", unit, own)
    if len(words.actions) > 1:
        taken = sessions.actions[..., None] == np.arange(len(words.actions))
        taken = (taken & here[..., None]).reshape(len(values), -1, len(words.actions))
        flat = each.reshape(len(values), -1, 1)
        count, total = taken.sum(axis=1), np.where(taken, flat, 0.0).sum(axis=1)
        means = _over(total, count)
        around = np.where(taken, flat - np.nan_to_num(means)[:, None], 0.0)
        freedom = np.maximum(count - 1, 0).sum(axis=1)
        spread = np.sqrt(_over((around**2).sum(axis=(1, 2)), freedom))
        yield Statistic(f"spread of {label} at one action", unit, spread)
        for action, name in enumerate(words.actions):
            yield Statistic(f"mean of {label} at {name}", unit, means[:, action])


def _of_actions(sessions: Sessions, words: Words) -> Iterator[Statistic]:
    """How often actions are taken, repeated, and taken by two agents at once."""
    actions, acted = sessions.actions, sessions.acted
    for action, name in enumerate(words.actions):
        yield Statistic(f"share of {name} among actions", "", _mean(actions == action, acted, (1, 2)))
    repeated, both = actions[:, 1:] == actions[:, :-1], acted[:, 1:] & acted[:, :-1]
    yield Statistic("share of actions that repeat the last one", "", _mean(repeated, both, (1, 2)))
    if actions.shape[2] > 1:
        pairs = np.triu_indices(actions.shape[2], k=1)
        same = actions[:, :, pairs[0]] == actions[:, :, pairs[1]]
        together = acted[:, :, pairs[0]] & acted[:, :, pairs[1]]
        name = f"share of pairs of {words.agent}s that take the same action"
        yield Statistic(name, "", _mean(same, together, (1, 2)))


def _without_dust(values: np.ndarray) -> np.ndarray:
    """Zero for what rounding leaves of it, such as the standard deviation of equal readings."""
    return np.where(np.abs(values) < 1e-9, 0.0, values)


def _over(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """A mean; NaN of nothing."""
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _mean(values: np.ndarray, here: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return _over(np.where(here, values, 0.0).sum(axis=axes), here.sum(axis=axes))


def _spread(values: np.ndarray, here: np.ndarray) -> np.ndarray:
    """Standard deviation over agents, of (sessions, rounds, agents)."""
    mean = np.nan_to_num(_mean(values, here, (2,)))
    return np.sqrt(np.nan_to_num(_mean((values - mean[..., None]) ** 2, here, (2,))))


def _correlation(before: np.ndarray, after: np.ndarray, here: np.ndarray) -> np.ndarray:
    """Correlation over all pairs of a session; NaN for fewer than three pairs, or where nothing varies."""
    left, right = (np.where(here, x - np.nan_to_num(_mean(x, here, (1, 2)))[:, None, None], 0) for x in (before, after))
    product, one, other = (x.sum(axis=(1, 2)) for x in (left * right, left**2, right**2))
    varies = (one > 1e-12) & (other > 1e-12) & (here.sum(axis=(1, 2)) > 2)
    return np.where(varies, product / np.sqrt(np.where(varies, one * other, 1.0)), np.nan)
