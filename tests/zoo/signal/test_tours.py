"""Tours: nobody looks twice before everything was seen, and the order is the one that trying everything finds."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from icmape.zoo.signal.signal import Signal
from icmape.zoo.signal.tours import NEVER, detectors_sweep, moves_until_seen, moves_until_toured, sweep, windows

PAPERS = Signal()
SMALL = Signal(grid=9, window=3, move=3, distance=4, horizon=8)


@pytest.mark.parametrize("problem", [PAPERS, Signal(grid=15, window=3, move=3, distance=6)])
def test_a_sweep_covers_every_tile_and_none_twice_before_that(problem):
    tours = sweep(problem)
    tiles, agents = (problem.grid // problem.move) ** 2, problem.agents
    whole_rounds = tiles // agents
    first = [tuple(place) for places in tours.positions[:whole_rounds] for place in places.tolist()]
    assert len(set(first)) == whole_rounds * agents
    soon = tours.positions[: -(-tiles // agents)].reshape(-1, 2)
    assert windows(problem, soon).any(axis=0).all()


@pytest.mark.parametrize("tours", [sweep(SMALL), detectors_sweep(SMALL)])
def test_positions_are_where_the_moves_lead(tours):
    positions = np.array(SMALL.starts[: tours.moves.shape[1]])
    for number, moves in enumerate(tours.moves):
        np.testing.assert_array_equal(tours.positions[number], positions)
        positions = np.asarray(SMALL.moved(jnp.asarray(positions, jnp.int8), jnp.asarray(moves)))


def test_no_tours_of_two_rounds_leave_less_unseen():
    """All of them, by the expected rounds that the source stays unseen."""
    problem = Signal(grid=9, window=3, move=3, distance=4, horizon=3)
    prior = np.asarray(problem.field.prior().sources, np.float64)
    missed = 1 - float(problem.detection)

    def cost(positions: np.ndarray) -> float:
        left, total = prior.copy(), 0.0
        for number, places in enumerate(positions):
            left = left * np.prod(np.where(windows(problem, places), missed, 1.0), axis=0)
            total += left.sum() if number else 0.0
        return total

    places = list(itertools.product((1, 4, 7), repeat=2))
    steps = {a: [b for b in places if abs(a[0] - b[0]) + abs(a[1] - b[1]) in (0, 3)] for a in places}
    ways = [[(start, a, b) for a in steps[start] for b in steps[a]] for start in problem.starts]
    best = min(cost(np.array(three).swapaxes(0, 1)) for three in itertools.product(*ways))
    assert cost(sweep(problem).positions) == pytest.approx(best, rel=1e-6)


def test_detectors_leave_to_the_field_agent_what_is_near_to_it():
    """Bottom left, on the paper's grid: nobody else comes there soon."""
    soon = moves_until_toured(PAPERS, detectors_sweep(PAPERS))[0].reshape(25, 25)
    assert soon[15:, :10].min() > 5
    assert soon[:5, 5:15].max() <= 2
    assert soon[5:15, 20:].max() <= 2


def test_moves_until_a_cell_is_seen_by_hand():
    """From the top left, windows of 3 around (1, 1): row 4 is a move away; arms of 2 reach row 4 but not (4, 4)."""
    plain = moves_until_seen(SMALL, 0).reshape(3, 3, 9, 9)
    arms = moves_until_seen(SMALL, 0, arm=2).reshape(3, 3, 9, 9)
    assert plain[0, 0, 2, 2] == 0
    assert plain[0, 0, 4, 1] == 1
    assert plain[0, 0, 8, 8] == 4
    assert (arms[0, 0, 4, 1], arms[0, 0, 4, 4], arms[0, 0, 5, 1]) == (0, 1, 1)


def test_cells_that_no_window_reaches_are_never_seen():
    problem = Signal(grid=11, window=3, move=4, distance=4)
    assert moves_until_seen(problem, 0).max() == NEVER
