"""Networks that read maps: tiles, correlations and receptive fields by hand; step equals unroll."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.errors import UserError
from icmape.networks import Actors, Critic, GridEncoder, TeamValue, make_inference
from icmape.networks.grid import cut_tiles
from icmape.networks.inference_networks import correlate
from icmape.problem import Features
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.signal.signal import Signal
from tests.support import drawn, step, unroll

ROUNDS, WIDTH = 4, 8


def normal(seed: int, *shape: int) -> jnp.ndarray:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)


@pytest.fixture(scope="module")
def problem() -> Signal:
    return Signal(grid=7, window=3, move=2, distance=3, horizon=5)


@pytest.fixture(scope="module")
def local() -> Features:
    return Features(normal(1, 3, ROUNDS, 15), normal(2, 3, ROUNDS, 2, 7, 7))


@pytest.fixture(scope="module")
def team() -> Features:
    return Features(normal(3, ROUNDS, 45), normal(4, ROUNDS, 6, 7, 7))


def test_tiles_are_what_lies_in_them():
    grid = jnp.arange(2 * 4 * 5, dtype=jnp.float32).reshape(2, 4, 5)
    tiles = np.asarray(cut_tiles(grid, 3))
    padded = np.pad(np.asarray(grid), ((0, 0), (0, 2), (0, 1)))
    assert tiles.shape == (4, 18)
    for index, (row, column) in enumerate([(0, 0), (0, 3), (3, 0), (3, 3)]):
        np.testing.assert_array_equal(tiles[index], padded[:, row : row + 3, column : column + 3].reshape(-1))


def test_a_correlation_is_a_sum_over_all_pairs_of_cells():
    rows, columns, channels = 3, 4, 2
    kernels, maps = normal(5, channels, 5, 7), normal(6, rows * columns, channels)
    found = np.asarray(correlate(kernels, maps, (rows, columns))).reshape(rows, columns, channels)
    values = np.asarray(maps).reshape(rows, columns, channels)
    for i, j, c in ((0, 0, 0), (2, 1, 1), (1, 3, 0)):
        expected = sum(
            float(kernels[c, i - k + rows - 1, j - m + columns - 1]) * values[k, m, c]
            for k in range(rows)
            for m in range(columns)
        )
        assert found[i, j, c] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("shared", [True, False])
def test_actors_with_maps_agree_with_themselves_step_by_step(problem, local, shared):
    actors = drawn(lambda: Actors(problem, WIDTH, "paper+last", -1.0, shared, key=jax.random.key(0)))
    assert isinstance(actors.actor.encoder, GridEncoder)
    whole = unroll(actors, local)
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (3, *x.shape)), actors.pick(0).start())
    for t in range(ROUNDS):
        states, scores = step(actors, states, jax.tree.map(lambda x, t=t: x[:, t], local), jnp.int32(t))
        np.testing.assert_allclose(scores, whole[:, t], rtol=1e-4, atol=1e-4)


def test_another_agents_map_cannot_move_my_scores(problem, local):
    actors = drawn(lambda: Actors(problem, WIDTH, "paper+last", -1.0, False, key=jax.random.key(0)))
    before = unroll(actors, local)
    moved = Features(local.token.at[1].add(1.0), local.grid.at[1].add(1.0))
    after = unroll(actors, moved)
    np.testing.assert_array_equal(before[0], after[0])
    np.testing.assert_array_equal(before[2], after[2])
    assert np.all(np.any(np.asarray(before[1] != after[1]), axis=1))


def test_critic_and_value_read_the_teams_maps(problem, team):
    critic = drawn(lambda: Critic(problem, WIDTH, "paper+last", 5, key=jax.random.key(0)))
    value = drawn(lambda: TeamValue(problem, WIDTH, "paper+last", key=jax.random.key(0)))
    assert eqx.filter_jit(critic.summaries)(team).shape == (ROUNDS, WIDTH)
    other = team._replace(grid=team.grid.at[2].add(1.0))
    moved = np.asarray(unroll(value, team) != unroll(value, other))
    assert moved.tolist() == [False, False, True, False]  # a map is read in its own round only


@pytest.mark.parametrize("kind", ["recurrent", "convolutional", "correlating"])
def test_inference_networks_agree_with_themselves_step_by_step(problem, team, kind):
    network = drawn(partial(make_inference, problem, WIDTH, "paper+last", kind, key=jax.random.key(0)), scale=0.2)
    whole = unroll(network, team)
    assert whole.shape == (ROUNDS, 49)
    state = network.start()
    for t in range(ROUNDS):
        state, scores = step(network, state, jax.tree.map(lambda x, t=t: x[t], team))
        np.testing.assert_allclose(scores, whole[t], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kind", "far"), [("paper", False), ("default", True)])
def test_how_far_an_inference_network_sees(problem, team, kind, far):
    """The paper's: 5×5 cells. The default: all of the map."""
    network = drawn(partial(make_inference, problem, WIDTH, "paper+last", kind, key=jax.random.key(0)), scale=0.5)
    slope = jax.jit(jax.grad(lambda grid: network.scores(grid)[3, 3]))(team.grid[0])
    seen = np.any(np.asarray(slope) != 0, axis=0)
    near = np.abs(np.arange(7) - 3) <= 2
    assert np.all(seen[np.ix_(near, near)])
    assert seen.sum() == (49 if far else 25)


def test_hypotheses_may_be_some_of_the_cells(team):
    class Some(Signal):
        """Two cells only."""

        @property
        def cells(self):
            return np.array([5, 40])

    problem = Some(grid=7, window=3, move=2, distance=3, horizon=5)
    network = drawn(partial(make_inference, problem, WIDTH, "paper+last", "default", key=jax.random.key(0)))
    _, scores = step(network, (), jax.tree.map(lambda x: x[0], team))
    np.testing.assert_allclose(scores, network.scores(team.grid[0]).reshape(-1)[np.array([5, 40])], rtol=1e-5)


def test_a_map_network_needs_a_map():
    with pytest.raises(UserError, match="not cells of a map"):
        make_inference(Bandit(2, 3, 7), WIDTH, "paper+last", "correlating", key=jax.random.key(0))
