"""Coordination: joint actions, actions of each agent, and which agents stop, by round."""

from collections import Counter
from typing import NamedTuple

import numpy as np

MOST_ROUNDS = 40  # of a table
MOST_ACTIONS = 6  # of an agent in a round: the most frequent ones


class JointAction(NamedTuple):
    """The most common joint action of a round, among episodes that continue after it."""

    round: int
    actions: tuple[int, ...]
    episodes: int
    active: int  # n_active: episodes that reach this round


class Habit(NamedTuple):
    """Actions of an agent in a round with their counts among active episodes, most common first."""

    round: int
    agent: int
    actions: tuple[tuple[int, int], ...]
    active: int


class StopSet(NamedTuple):
    """A set of agents that chose STOP together, and the number of episodes."""

    agents: tuple[int, ...]
    episodes: int


class Coordination(NamedTuple):
    """Joint actions and stops of a team. Action number `stop` is STOP."""

    stop: int
    joint: tuple[JointAction, ...]
    habits: tuple[Habit, ...]
    stops: tuple[StopSet, ...]  # voluntary ones
    voluntary: int
    episodes: int


def coordination(actions: np.ndarray, stop: np.ndarray, stop_action: int, horizon: int) -> Coordination:
    """From played episodes: actions (episodes, rounds, agents), and the round in which each ended."""
    rounds = min(int(stop.max()) + 1, actions.shape[1], MOST_ROUNDS)
    joint, habits = [], []
    for number in range(rounds):
        active = stop >= number
        going = actions[stop > number, number]
        if len(going):
            chosen, counts = np.unique(going, axis=0, return_counts=True)
            most = int(np.argmax(counts))
            joint.append(JointAction(number, tuple(map(int, chosen[most])), int(counts[most]), int(active.sum())))
        for agent in range(actions.shape[2]):
            common = Counter(actions[active, number, agent].tolist()).most_common(MOST_ACTIONS)
            habits.append(Habit(number, agent, tuple((int(a), int(n)) for a, n in common), int(active.sum())))
    return Coordination(
        stop_action,
        tuple(joint),
        tuple(habits),
        stop_sets(actions, stop, stop_action, horizon),
        int((stop < horizon - 1).sum()),
        len(stop),
    )


def stop_sets(actions: np.ndarray, stop: np.ndarray, stop_action: int, horizon: int) -> tuple[StopSet, ...]:
    """Sets of agents that stopped together, sorted by size and frequency, without forced stops."""
    willing = np.flatnonzero(stop < horizon - 1)
    last = actions[willing, stop[willing]] == stop_action
    counts = Counter(tuple(np.flatnonzero(row).tolist()) for row in last)
    ordered = sorted(counts.items(), key=lambda pair: (len(pair[0]), -pair[1], pair[0]))
    return tuple(StopSet(agents, count) for agents, count in ordered)


def still_active(stop: np.ndarray) -> list[int]:
    """n_active: the number of episodes that reach each round, up to the first round that none reaches."""
    ends = np.bincount(stop)
    return [len(stop), *(len(stop) - np.cumsum(ends)).tolist()]
