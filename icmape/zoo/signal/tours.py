"""Tours: non-adaptive plans of agents that see a window and move by whole steps.

The cost of a plan is the unseen prior probability of the source, summed over rounds: the expected number of rounds
until the source is covered. Cells that are always seen together are merged. Joint moves are searched with a beam, so
the result may not be optimal.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from icmape.zoo.signal.signal import MOVES, STAY, Signal

BEAM = 300  # partial plans kept
NEVER = 99  # number of moves for events that never happen
FOUND_BY_ITSELF = 0.5  # share of sources n moves away that the field agent finds within n + 1 moves


class Tours(NamedTuple):
    """Moves of every round, and positions at every time, from the start on."""

    moves: Int[np.ndarray, "rounds agents"]
    positions: Int[np.ndarray, "times agents 2"]


class Walks(NamedTuple):
    """Positions of one agent, the cells seen from each, and the results of its moves."""

    places: Int[np.ndarray, "places 2"]
    sees: Bool[np.ndarray, "places cells"]
    after: Int[np.ndarray, "places moves"]
    start: int


def walks(problem: Signal, agent: int) -> Walks:
    """Walks of one agent; places are numbered row by row."""
    grid, move, start = problem.grid, problem.move, problem.starts[agent]
    places = np.array([(r, c) for r in range(start[0] % move, grid, move) for c in range(start[1] % move, grid, move)])
    number = {tuple(place): i for i, place in enumerate(places.tolist())}
    moved = (places[:, None] + move * np.array(MOVES[:STAY])[None]).tolist()
    after = [[number.get(tuple(target), i) for target in line] for i, line in enumerate(moved)]
    return Walks(places, windows(problem, places), np.array(after), number[start])


def windows(problem: Signal, places: Int[np.ndarray, "places 2"], arm: int = 0) -> Bool[np.ndarray, "places cells"]:
    """Cells in the windows around places, extended by arms of this length along the window's rows and columns."""
    cells = np.stack(np.divmod(np.arange(problem.grid**2), problem.grid), axis=1)
    away = np.abs(cells[None] - places[:, None])
    half = problem.window // 2
    return (np.max(away, axis=2) <= half + arm) & (np.min(away, axis=2) <= half)


def moves_until_seen(problem: Signal, agent: int, arm: int = 0) -> Int[np.ndarray, "rows columns cells"]:
    """Moves until a cell is in an agent's window (or the window's arms), from each of its positions."""
    walk = walks(problem, agent)
    steps = np.abs(walk.places[:, None] - walk.places[None]).sum(axis=2) // problem.move
    sees = windows(problem, walk.places, arm)
    moves = np.stack([np.where(sees, line[:, None], NEVER).min(axis=0) for line in steps])
    lines = len(np.unique(walk.places[:, 0]))
    return moves.reshape(lines, -1, problem.grid**2)


def moves_until_toured(problem: Signal, tours: Tours) -> Int[np.ndarray, "times cells"]:
    """From each round on: moves until an agent on a tour sees a cell again."""
    seen = np.stack([windows(problem, places).any(axis=0) for places in tours.positions])
    until = np.full(seen.shape, NEVER)
    for number in range(len(seen) - 2, -1, -1):
        until[number] = np.where(seen[number + 1], 1, np.minimum(until[number + 1] + 1, NEVER))
    return until


def sweep(problem: Signal) -> Tours:
    """Tours of all agents."""
    return plan(problem, range(problem.agents), np.ones((problem.horizon, problem.grid**2)))


def detectors_sweep(problem: Signal) -> Tours:
    """Tours of the detectors, given a field agent that finds some of the sources near it."""
    near = moves_until_seen(problem, problem.detectors).reshape(-1, problem.grid**2)
    soon = near[walks(problem, problem.detectors).start] + 1
    rounds = np.arange(problem.horizon)[:, None]
    return plan(problem, range(problem.detectors), np.where(rounds == soon[None], 1 - FOUND_BY_ITSELF, 1.0))


def plan(problem: Signal, agents: Sequence[int], stays: Float[np.ndarray, "rounds cells"]) -> Tours:
    """The best tours found up to the horizon; `stays` is the share of each cell's probability that others leave."""
    agent_walks = [walks(problem, agent) for agent in agents]
    together, first = _seen_together(agent_walks)
    sees = [walk.sees[:, first] for walk in agent_walks]
    joint = np.array(list(itertools.product(range(STAY), repeat=len(agent_walks))))
    missed = 1 - float(problem.detection)
    at = np.array([[walk.start for walk in agent_walks]])
    prior = np.asarray(problem.field.prior().sources, np.float64)
    unseen = np.bincount(together, weights=prior)[None]
    if problem.observe_start:
        unseen = unseen * np.prod([np.where(s[at[:, i]], missed, 1.0) for i, s in enumerate(sees)], axis=0)
    cost, moves, places = np.zeros(1), np.zeros((1, 0, len(agent_walks)), int), at[:, None]
    for number in range(1, problem.horizon):
        next_places = np.stack([walk.after[at[:, i]][:, joint[:, i]] for i, walk in enumerate(agent_walks)], axis=-1)
        remaining = unseen[:, None] * stays[number, first]
        for i, seen in enumerate(sees):
            remaining = remaining * np.where(seen[next_places[:, :, i]], missed, 1.0)
        total = cost[:, None] + remaining.sum(axis=2)
        selected, move = _best(total, next_places, remaining)
        at, unseen, cost = next_places[selected, move], remaining[selected, move], total[selected, move]
        moves = np.concatenate([moves[selected], joint[move][:, None]], axis=1)
        places = np.concatenate([places[selected], at[:, None]], axis=1)
    best = int(np.argmin(cost))
    return Tours(moves[best], np.stack([walk.places[places[best, :, i]] for i, walk in enumerate(agent_walks)], axis=1))


def _seen_together(agent_walks: list[Walks]) -> tuple[Int[np.ndarray, "cells"], Int[np.ndarray, "groups"]]:
    """Groups of cells that every window covers together: each cell's group, and one cell of each group."""
    _, first, group = np.unique(
        np.concatenate([w.sees for w in agent_walks]), axis=1, return_index=True, return_inverse=True
    )
    return group, first


def _best(
    total: Float[np.ndarray, "plans joint"], at: Int[np.ndarray, "plans joint agents"], unseen: Float[np.ndarray, "..."]
) -> tuple[Int[np.ndarray, "kept"], Int[np.ndarray, "kept"]]:
    """The cheapest continuations, without duplicates of positions and remaining probability."""
    plans, moves = np.unravel_index(np.argsort(total, axis=None, kind="stable")[: 6 * BEAM], total.shape)
    alike = np.concatenate([at[plans, moves], np.round(unseen[plans, moves] * 1e9)], axis=1)
    selected = np.sort(np.unique(alike, axis=0, return_index=True)[1])[:BEAM]
    return plans[selected], moves[selected]
