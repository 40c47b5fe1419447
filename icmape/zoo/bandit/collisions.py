"""Collision tests in a fixed order, in the manner of A-CAPELLA (arXiv 2506.10127).

In a test of arm k and load m, m players are on the arm: if one of them is paid, the arm serves m; enough failures say
that it does not. All players know the order beforehand, so that the loads are what each expects.
"""

import numpy as np
from jaxtyping import Int

from icmape.zoo.bandit.bandit import Bandit


def one_sweep(arms: int, players: int) -> list[list[int]]:
    """Loads of the rounds that test every arm once at every load from N to 2, several arms in a round if they fit.

    Players who are left over go to an arm of their own; a single arm can be tested at load N only.
    """
    wanted = [(load, arm) for load in range(players, 1, -1) for arm in range(arms) if arms > 1 or load == players]
    rounds = []
    while wanted:
        loads = [0] * arms
        for load, arm in tuple(wanted):
            left, free = players - sum(loads), loads.count(0)
            if loads[arm] == 0 and (load == left or (load < left and free > 1)):
                loads[arm] = load
                wanted.remove((load, arm))
        if left := players - sum(loads):
            loads[loads.index(0)] = left
        rounds.append(loads)
    return rounds or [[players] + [0] * (arms - 1)]  # one player has nothing to test


def collision_tests(problem: Bandit) -> Int[np.ndarray, "all_rounds players"]:
    """The arm of every player in sweeps up to the horizon. Players take each other's places from sweep to sweep."""
    sweep = [np.repeat(np.arange(problem.arms), loads) for loads in one_sweep(problem.arms, problem.players)]
    numbers = range(problem.horizon - 1)
    return np.stack([np.roll(sweep[number % len(sweep)], number // len(sweep)) for number in numbers]).astype(np.int32)
