"""Who does what when: joint actions, each agent's habits, and who ends it."""

from collections import Counter
from typing import NamedTuple

import numpy as np

MOST_ROUNDS = 40  # of a table
MOST_ACTIONS = 6  # of an agent in a round that are named: the most frequent


class JointAction(NamedTuple):
    """The most common joint action of a round among episodes that went on."""

    round: int
    actions: tuple[int, ...]
    episodes: int
    active: int  # n_active: episodes that had not ended before this round


class Habit(NamedTuple):
    """What an agent did in a round: actions with how many of the active episodes chose them, commonest first."""

    round: int
    agent: int
    actions: tuple[tuple[int, int], ...]
    active: int


class StopSet(NamedTuple):
    """Agents that chose STOP together, and how often."""

    agents: tuple[int, ...]
    episodes: int


class Coordination(NamedTuple):
    """How a team moves and ends. Action number `stop` is STOP."""

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
    """Combinations of agents that stopped at the same time, by their size and then how often; forced stops left out."""
    willing = np.flatnonzero(stop < horizon - 1)
    last = actions[willing, stop[willing]] == stop_action
    found = Counter(tuple(np.flatnonzero(row).tolist()) for row in last)
    ordered = sorted(found.items(), key=lambda pair: (len(pair[0]), -pair[1], pair[0]))
    return tuple(StopSet(agents, count) for agents, count in ordered)


def still_active(stop: np.ndarray) -> list[int]:
    """n_active: how many episodes had not ended before each round, up to the first round that none reaches."""
    ends = np.bincount(stop)
    return [len(stop), *(len(stop) - np.cumsum(ends)).tolist()]
