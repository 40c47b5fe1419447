"""Source localization: what is drawn, what is seen, what is remembered, and by whom."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.errors import UserError
from icmape.play.rollout import histories, play_greedy
from icmape.problem import Centralized, check_problem
from icmape.zoo.signal.signal import DOWN, LEFT, RIGHT, STAY, UP, Signal, SignalWorld
from tests.support import script

SMALL = {"grid": 7, "window": 3, "move": 2, "distance": 3}


@pytest.mark.parametrize(
    "arguments",
    [{}, {"information": "shared-positions"}, {"observe_start": False}, {"starts": [[0, 0], [6, 3], [5, 5]]}],
    ids=["corners", "shared positions", "nothing seen first", "anywhere"],
)
def test_the_contract_is_kept(arguments):
    check_problem(Signal(**SMALL, **arguments))


def test_its_central_version_keeps_the_contract_too():
    check_problem(Centralized(Signal(**SMALL)))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"window": 4}, "odd number"),
        ({"grid": 40}, "2 to 32"),
        ({"distance": 100}, "1 to 48"),
        ({"intensity_alpha": 2.0}, "two positive"),
        ({"starts": [[0, 0]]}, "as many starts"),
        ({"starts": [[0, 0], [0, 30], [1, 1]]}, "must lie on"),
        ({"detectors": 6}, "give their starts"),
        ({"detection": 1.0}, "strictly between"),
    ],
)
def test_what_cannot_be_is_refused(arguments, said):
    with pytest.raises(UserError, match=said):
        Signal(**arguments)


# -- the world


def worlds(problem: Signal, count: int) -> SignalWorld:
    return jax.jit(jax.vmap(lambda key: problem.sample(key=key)))(jax.random.split(jax.random.key(1), count))


def apart(problem: Signal, drawn: SignalWorld) -> np.ndarray:
    source, distractor = (np.stack(np.divmod(np.asarray(x), problem.grid)) for x in drawn[:2])
    return np.abs(source - distractor).sum(axis=0)


def test_all_pairs_far_enough_apart_are_equally_likely():
    """A χ² of all 1,172 pairs over 60,000 worlds; false alarm one in a million."""
    problem = Signal(**SMALL)
    drawn = worlds(problem, 60_000)
    counts = np.zeros((49, 49))
    np.add.at(counts, (np.asarray(drawn.hypothesis), np.asarray(drawn.distractor)), 1)
    cells = np.stack(np.divmod(np.arange(49), 7), axis=1)
    allowed = np.abs(cells[:, None] - cells[None]).sum(axis=2) >= 3
    assert counts[~allowed].sum() == 0
    expected = 60_000 / allowed.sum()
    excess = ((counts[allowed] - expected) ** 2 / expected).sum() - allowed.sum()
    assert abs(excess) < 5 * np.sqrt(2 * allowed.sum())


def test_a_fixed_distance_is_kept():
    problem = Signal(**SMALL, exact_distance=9)
    assert set(apart(problem, worlds(problem, 500))) == {9}


@pytest.mark.parametrize(("alpha", "beta"), [(None, None), (4.0, 1.5)])
def test_intensities_have_the_moments_of_a_scaled_beta(alpha, beta):
    """20,000 draws; false alarm one in a million for the mean."""
    problem = Signal(**SMALL, intensity_low=0.1, intensity_high=0.6, intensity_alpha=alpha, intensity_beta=beta)
    unit = (np.asarray(worlds(problem, 20_000).intensity) - 0.1) / 0.5
    a, b = (alpha, beta) if alpha else (1.0, 1.0)
    variance = a * b / ((a + b) ** 2 * (a + b + 1))
    assert unit.min() >= 0
    assert unit.max() <= 1
    assert abs(unit.mean() - a / (a + b)) < 5 * np.sqrt(variance / 20_000)
    assert unit.var() == pytest.approx(variance, rel=0.05)


def test_moves_off_the_grid_are_not_made():
    problem = Signal(**SMALL)  # starts at (1, 1), (1, 5), (5, 1); moves of 2
    positions = jnp.asarray(problem.starts, jnp.int8)
    moved = [problem.moved(positions, jnp.asarray(actions)).tolist() for actions in ([UP, RIGHT, DOWN], [LEFT] * 3)]
    assert moved[0] == [[1, 1], [1, 5], [5, 1]]
    assert moved[1] == [[1, 1], [1, 3], [5, 1]]
    assert problem.moved(positions, jnp.array([DOWN, STAY, UP])).tolist() == [[3, 1], [1, 5], [3, 1]]


def test_learners_are_not_offered_to_stay():
    problem = Signal(**SMALL)
    _, first = problem.start(problem.sample(key=jax.random.key(0)), key=jax.random.key(0))
    memory = problem.init_memory(jnp.int32(0), jax.tree.map(lambda x: x[0], first))
    assert problem.learner_action_mask(memory).tolist() == [True] * 4 + [False]
    assert problem.action_mask(memory).all()


# -- what is seen


def looks(problem: Signal, world: SignalWorld, position: list[int], count: int) -> np.ndarray:
    """Windows of all agents standing at one place, many times."""
    positions = jnp.broadcast_to(jnp.asarray(position, jnp.int8), (problem.agents, 2))
    look = jax.jit(jax.vmap(lambda key: problem.observe(world, positions, key=key).window))
    return np.asarray(look(jax.random.split(jax.random.key(2), count)), np.float32)


def test_detectors_register_the_source_with_their_probability():
    """4,000 looks of each detector; false alarm one in a million."""
    problem = Signal(**SMALL, detection=0.8)
    world = SignalWorld(jnp.int16(2 * 7 + 3), jnp.int16(48), jnp.float32(0.5))
    seen = looks(problem, world, [3, 3], 4000)[:, :2]
    assert np.all(seen[..., [0, 1, 1, 2, 2], [0, 0, 1, 0, 1]] == 0)
    spread = np.sqrt(0.8 * 0.2 / 4000)
    assert np.all(np.abs(seen[:, :, 0, 1].mean(axis=0) - 0.8) < 5 * spread)
    assert looks(problem, world, [5, 5], 200)[:, :2].max() == 0


def test_the_field_is_that_of_the_nearer_one_and_clipped():
    """Means of clipped normals by numerical integration, for cells of either side and a tie; 20,000 looks."""
    problem = Signal(**SMALL, decay=0.4, noise=0.2)
    world = SignalWorld(jnp.int16(3 * 7 + 1), jnp.int16(3 * 7 + 5), jnp.float32(0.6))
    seen = looks(problem, world, [3, 3], 20_000)[:, 2]
    x = np.linspace(-2, 3, 20_001)
    for row, column in ((1, 0), (1, 1), (1, 2), (0, 0)):  # from the source 1, 2, 3, 2 steps; from the other 3, 2, 1, 4
        to_source, to_other = abs(row - 1) + abs(column + 2 - 1), abs(row - 1) + abs(column + 2 - 5)
        mean = np.exp(-0.4 * to_source) if to_source < to_other else 0.6 * np.exp(-0.4 * to_other)
        weights = np.exp(-0.5 * ((x - mean) / 0.2) ** 2)
        expected = (np.clip(x, 0, 1) * weights).sum() / weights.sum()
        assert abs(seen[:, row, column].mean() - expected) < 5 * 0.2 / np.sqrt(20_000) + 5e-4


def test_windows_are_cut_at_the_edge():
    problem = Signal(**SMALL, starts=[[0, 0], [0, 6], [6, 0]], noise=0.3)
    world = SignalWorld(jnp.int16(0), jnp.int16(48), jnp.float32(0.5))
    _, first = problem.start(world, key=jax.random.key(0))
    memories = jax.vmap(problem.init_memory)(jnp.arange(3), first)
    inside = np.asarray(memories.queries) > 0
    assert inside.sum(axis=(1, 2)).tolist() == [4, 4, 4]
    assert np.all(np.asarray(first.window)[2][2, :] == 0)  # the row below the grid


# -- what is remembered


ROUTE = [[DOWN, LEFT, UP], [RIGHT, DOWN, RIGHT], [UP, LEFT, LEFT], [DOWN, DOWN, UP], [0, 0, 5]]


@pytest.fixture(scope="module", params=["strict", "shared-positions"])
def played(request):
    """Eight episodes of a fixed route."""
    problem = Signal(**SMALL, horizon=6, information=request.param)
    keys = jax.random.split(jax.random.key(5), 8)
    episodes = jax.jit(lambda k: play_greedy(problem, script(problem, ROUTE), k))(keys)
    return problem, episodes


def test_running_maps_equal_recomputation(played):
    problem, episodes = played
    episode = jax.tree.map(lambda x: x[3], episodes)
    seen = jax.jit(partial(histories, problem))(episode)
    episode = jax.tree.map(np.asarray, episode)
    for agent in range(3):
        total, count = np.zeros((7, 7)), np.zeros((7, 7))
        own = agent if problem.information == "shared-positions" else 0
        for t in range(5):
            row, column = episode.observations.positions[t, agent, own]
            for i in range(3):
                for j in range(3):
                    if 0 <= (r := row + i - 1) < 7 and 0 <= (c := column + j - 1) < 7:
                        total[r, c] += episode.observations.window[t, agent, i, j]
                        count[r, c] += 1
            mean, queries = np.asarray(seen.local.grid)[agent, t]
            np.testing.assert_allclose(queries, count)
            np.testing.assert_allclose(mean, total / np.maximum(count, 1), rtol=1e-6)


def test_what_others_see_reaches_nobody_elses_view(played):
    """Under "strict" nothing of the others does; with shared positions, only where they are."""
    problem, episodes = played
    one, other = (jax.tree.map(lambda x, i=i: x[i], episodes) for i in (0, 1))
    everyone = jnp.arange(3)
    mixed = one._replace(
        observations=jax.tree.map(
            lambda a, b: jnp.where((everyone == 1).reshape(1, 3, *(1,) * (a.ndim - 2)), a, b),
            one.observations,
            other.observations,
        )
    )
    look = jax.jit(partial(histories, problem))
    before, after = look(one).local, look(mixed).local
    np.testing.assert_array_equal(np.asarray(before.token)[1], np.asarray(after.token)[1])
    np.testing.assert_array_equal(np.asarray(before.grid)[1], np.asarray(after.grid)[1])
    assert np.any(np.asarray(before.grid)[2] != np.asarray(after.grid)[2])
    known = (np.asarray(before.token)[0, 0, :-1] > 0).sum() // 2
    assert known == (3 if problem.information == "shared-positions" else 1)


def test_what_others_do_changes_nothing_that_an_agent_sees():
    """Under "strict", in the same world with the same noise: each agent's observation by each other's action."""
    problem = Signal(**SMALL)
    world, key = problem.sample(key=jax.random.key(3)), jax.random.key(4)
    state, _ = problem.start(world, key=key)
    step = jax.jit(lambda actions: problem.step(world, state, actions, key=key)[1])
    base = step(jnp.array([DOWN, LEFT, UP]))
    for agent in range(3):
        for other in {0, 1, 2} - {agent}:
            seen = step(jnp.array([DOWN, LEFT, UP]).at[other].set(STAY))
            for a, b in zip(jax.tree.leaves(base), jax.tree.leaves(seen), strict=True):
                np.testing.assert_array_equal(np.asarray(a)[agent], np.asarray(b)[agent])


def test_the_order_of_worlds_in_a_batch_changes_nothing():
    problem = Signal(**SMALL, horizon=6)
    keys = jax.random.split(jax.random.key(5), 8)
    order = np.array([3, 1, 7, 0, 2, 6, 5, 4])
    run = jax.jit(lambda k: play_greedy(problem, script(problem, ROUTE), k))
    straight, shuffled = run(keys), run(keys[order])
    for a, b in zip(jax.tree.leaves(straight), jax.tree.leaves(shuffled), strict=True):
        np.testing.assert_array_equal(np.asarray(a)[order], np.asarray(b))
