"""Inference on fixed ground: rounds one by one or all at once, what it may know of places, and what it must not see."""

from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import load
from icmape.errors import UserError
from icmape.networks import CorrelatingInference, Inference, InferenceNetwork, make_inference
from icmape.networks.ground import DenseInference, PairwiseInference
from icmape.play.inference import NetworkInference
from icmape.play.open_loop import Uniform
from icmape.play.stop import Threshold
from icmape.play.team import Team
from icmape.problem import Centralized, Features
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.signal.signal import Signal
from tests.support import drawn, once, step, unroll
from tests.zoo.hotspots import small_hotspot

KINDS = {"dense": DenseInference, "pairwise": PairwiseInference}


@pytest.fixture(scope="module", params=sorted(KINDS))
def network(request) -> InferenceNetwork:
    """With weights of any size, also where they start at 0."""
    return drawn(partial(make_inference, small_hotspot(), 16, "paper", request.param, key=jax.random.key(0)), scale=0.3)


def views(rounds: int = 3, seed: int = 0) -> Features:
    """What a team could see."""
    chance = np.random.default_rng(seed)
    grid = chance.normal(size=(rounds, 5, 6, 6)) * chance.integers(0, 2, (rounds, 1, 6, 6))
    return Features(jnp.asarray(chance.normal(size=(rounds, 72)), jnp.float32), jnp.asarray(grid, jnp.float32))


def row(seen: Features, t: int) -> Features:
    return jax.tree.map(lambda x: x[t], seen)


def test_a_round_at_a_time_is_all_rounds_at_once(network):
    whole, state = unroll(network, views()), network.start()
    assert whole.shape == (3, 34)
    for t in range(3):
        state, scores = step(network, state, row(views(), t))
        np.testing.assert_allclose(scores, whole[t], rtol=1e-4, atol=1e-4)
    assert np.ptp(np.asarray(whole), axis=1).min() > 0.1


def test_a_kind_is_what_it_says(network):
    assert type(network) is KINDS[network.kind]
    assert network.width == 16
    assert network.cells == small_hotspot().valid


def test_a_cell_is_a_place(network):
    """With nothing read, cells differ already; and one reading says different things where it is read elsewhere."""
    here, there = (jnp.zeros((5, 36)).at[:, cell].set(1.0).reshape(1, 5, 6, 6) for cell in (14, 15))
    token = jnp.zeros((1, 72))
    empty, one, other = (
        np.asarray(unroll(network, Features(token, grid))[0]) for grid in (jnp.zeros((1, 5, 6, 6)), here, there)
    )
    assert len(np.unique(empty.round(4))) > 30
    told = np.sort(one - empty), np.sort(other - empty)
    assert np.abs(told[0] - told[1]).max() > 1e-2


def test_a_reading_in_one_cell_moves_all_others(network):
    """As correlations between places may be learned, near and far."""
    cell = small_hotspot().valid.index(14)
    base = views(1)
    moved = base._replace(grid=base.grid.at[:, :, 2, 2].add(1.0))  # row 2, column 2 is cell 14
    change = np.abs(np.asarray(unroll(network, moved) - unroll(network, base))[0])
    assert change.min() > 1e-6
    assert change[cell] > 1e-3


def test_only_valid_cells_are_read(network):
    """Nothing is known of the others, so nothing may be said of them; and maps have it all, the last query too."""
    invalid = sorted(set(range(36)) - set(small_hotspot().valid))
    assert len(invalid) == 2
    base = views(1)
    grid = base.grid.reshape(1, 5, 36).at[:, :, jnp.array(invalid)].set(9.0).reshape(1, 5, 6, 6)
    np.testing.assert_array_equal(unroll(network, Features(base.token + 1.0, grid)), unroll(network, base))


def test_every_weight_has_a_finite_gradient_and_a_say(network):
    """Also on an empty map."""

    def slopes() -> tuple:
        def loss(network: InferenceNetwork, grid) -> jax.Array:
            scores = network.unroll(Features(jnp.zeros((1, 72)), grid))[0]
            return -small_hotspot().hypotheses.log_likelihood(scores, jnp.array([3, 8], jnp.int16))

        slope = eqx.filter_grad(loss)
        return slope(network, views(1).grid), slope(network, jnp.zeros((1, 5, 6, 6)))

    full, empty = once(slopes)
    for leaf in jax.tree.leaves(empty):
        assert np.all(np.isfinite(leaf))
    for leaf in jax.tree.leaves(full):
        assert np.all(np.isfinite(leaf))
        assert np.any(np.asarray(leaf) != 0)


def test_untrained_networks_say_something_moderate():
    """Real initial weights: no cell is near certain of anything before training."""

    def scores() -> list:
        make = partial(make_inference, small_hotspot(), 64, "paper", key=jax.random.key(1))
        return [make(kind).unroll(views()) for kind in KINDS]

    for found in once(scores):
        assert np.abs(np.asarray(found)).max() < 10


def test_kinds_survive_a_file(network, tmp_path: Path):
    problem = small_hotspot()
    team = Team(problem, Uniform(2, 35), Threshold(0.9), NetworkInference(network), 0.2)
    team.save(tmp_path / "team.safetensors")
    again = load(tmp_path / "team.safetensors")
    assert type(again.inference.network) is type(network)
    assert eqx.tree_equal(again, team, typematch=True)
    np.testing.assert_array_equal(unroll(again.inference.network, views()), unroll(network, views()))


def test_the_default_is_by_the_problem():
    """By place where places are the same in all worlds, by distance where they are not; and where there are none..."""
    kinds = {
        PairwiseInference: small_hotspot(),
        CorrelatingInference: Signal(grid=6, window=3, move=3, distance=3),
        Inference: Bandit(2, 3),
    }
    for kind, problem in kinds.items():
        make = partial(make_inference, problem, 8, "paper", "default", key=jax.random.key(0))
        assert type(eqx.filter_eval_shape(make)) is kind
    central = partial(make_inference, Centralized(small_hotspot()), 8, "paper", "default", key=jax.random.key(0))
    assert type(eqx.filter_eval_shape(central)) is PairwiseInference


def test_a_problem_without_cells_has_no_ground():
    for kind in KINDS:
        with pytest.raises(UserError, match="hypotheses of Bandit are not cells of a map"):
            make_inference(Bandit(2, 3), 8, "paper", kind, key=jax.random.key(0))
