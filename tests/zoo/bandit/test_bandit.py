"""The capacity bandit: what its worlds do, and what is read of them."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from icmape import UserError
from icmape.problem.spec import build
from icmape.zoo.bandit.bandit import Bandit, BanditMemory, BanditWorld

LOW = 0.3


# -- what the world does


@pytest.fixture(scope="module")
def payments():
    """Payments of 5 players in 20,000 rounds at fixed actions: arms 0, 0, 1, 1, 1."""
    bandit = Bandit(arms=3, players=5, horizon=5)
    world = BanditWorld(jnp.array([1, 1, 4], jnp.int8), jnp.array([0.8, 0.6, 0.9]))  # capacities 2, 2, 5
    actions = jnp.array([0, 0, 1, 1, 1])
    keys = jax.random.split(jax.random.key(1), 20_000)
    return np.asarray(jax.jit(jax.vmap(lambda key: bandit.step(world, (), actions, key=key)[1]))(keys))


def test_an_overloaded_arm_pays_nobody(payments):
    assert payments[:, 2:].sum() == 0  # three players on an arm that serves two


def test_an_arm_at_its_capacity_pays_each_player_with_its_mean(payments):
    # 5 standard errors: false alarm about 1e-6 over both players
    error = math.sqrt(0.8 * 0.2 / len(payments))
    np.testing.assert_allclose(payments[:, :2].mean(0), 0.8, atol=5 * error)


def test_players_on_one_arm_are_paid_independently(payments):
    # the correlation of independent draws has standard error 1/√n; 5 of them: false alarm below 1e-6
    correlation = np.corrcoef(payments[:, 0], payments[:, 1])[0, 1]
    assert abs(correlation) < 5 / math.sqrt(len(payments))


UNIFORM = ({}, {"mean_low": 0.1})
BETAS = ({"mean_alpha": 0.5, "mean_beta": 3.0}, {"mean_alpha": 7.0, "mean_beta": 1.0, "mean_low": 0.1})
CONCENTRATIONS = (0.1, 1.0, 100.0)
WORLDS = 20_000


def sample_worlds(settings) -> BanditWorld:
    """Worlds of bandits that differ in their prior (leading axis): its parameters are leaves, so a sweep is a vmap."""
    bandits = [Bandit(arms=2, players=4, horizon=5, **prior) for prior in settings]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *bandits)
    keys = jax.random.split(jax.random.key(0), WORLDS)
    worlds = eqx.filter_jit(eqx.filter_vmap(lambda b: jax.vmap(lambda key: b.sample(key=key))(keys)))(stacked)
    return jax.tree.map(np.asarray, worlds)


@pytest.fixture(scope="module")
def worlds() -> BanditWorld:
    return sample_worlds(UNIFORM)


@pytest.fixture(scope="module")
def beta_worlds() -> BanditWorld:
    return sample_worlds(BETAS)


@pytest.fixture(scope="module")
def dirichlet_worlds() -> BanditWorld:
    return sample_worlds([{"capacity_concentration": c} for c in CONCENTRATIONS])


def test_capacities_are_uniform_and_independent(worlds):
    """Chi-square over all sixteen capacity pairs; false alarm 1e-6."""
    capacity = worlds.hypothesis[0].astype(int)
    counts = np.bincount(capacity[:, 0] * 4 + capacity[:, 1], minlength=16)
    expected = WORLDS / 16
    assert ((counts - expected) ** 2 / expected).sum() < stats.chi2.ppf(1 - 1e-6, df=15)


@pytest.mark.parametrize("index", range(3), ids=[f"θ={c}" for c in CONCENTRATIONS])
def test_shared_dirichlet_shares_make_arms_alike(dirichlet_worlds, index):
    """One draw of shares per world: two arms agree with probability (θ+1)/(Nθ+1), 1/N only as θ grows.

    Each arm by itself stays uniform. 5 standard errors: false alarm about 1e-6.
    """
    concentration, capacity = CONCENTRATIONS[index], dirichlet_worlds.hypothesis[index]
    alike = (concentration + 1) / (4 * concentration + 1)
    error = math.sqrt(alike * (1 - alike) / WORLDS)
    assert np.mean(capacity[:, 0] == capacity[:, 1]) == pytest.approx(alike, abs=5 * error)
    counts = np.bincount(capacity[:, 0], minlength=4)
    np.testing.assert_allclose(counts / WORLDS, 1 / 4, atol=5 * math.sqrt(0.25 * 0.75 / WORLDS))


@pytest.mark.parametrize("prior", [*UNIFORM, *BETAS], ids=str)
def test_means_have_the_moments_of_a_scaled_beta(worlds, beta_worlds, prior):
    """Beta(1, 1) where nothing is said. 5 standard errors of mean and variance: false alarm about 1e-6."""
    group, drawn = (BETAS, beta_worlds) if prior in BETAS else (UNIFORM, worlds)
    means = drawn.means[group.index(prior)].astype(np.float64)
    prior = {"mean_alpha": 1.0, "mean_beta": 1.0, "mean_low": LOW, **prior}
    low = prior["mean_low"]
    theory = stats.beta(prior["mean_alpha"], prior["mean_beta"], loc=low, scale=1 - low)
    fourth = theory.stats("k") * theory.var() ** 2 + 3 * theory.var() ** 2  # central, from the excess kurtosis
    assert means.min() >= low - 1e-6
    assert means.max() <= 1.0
    assert means.mean() == pytest.approx(theory.mean(), abs=5 * theory.std() / math.sqrt(means.size))
    assert means.var() == pytest.approx(theory.var(), abs=5 * math.sqrt((fourth - theory.var() ** 2) / means.size))


def test_a_player_sees_its_own_arm_and_payment():
    bandit = Bandit(arms=3, players=2, horizon=4)
    me, nothing, paid = jnp.int32(1), jnp.int8(0), jnp.int8(1)
    memory = bandit.init_memory(me, nothing)
    np.testing.assert_array_equal(bandit.features(memory).token, [0, 0, 0, 0, 0, 0])
    memory = bandit.update_memory(memory, me, jnp.int32(2), paid)
    np.testing.assert_array_equal(bandit.features(memory).token, [0, 0, 1, 0, 0, 0])
    memory = bandit.update_memory(memory, me, jnp.int32(0), nothing)
    np.testing.assert_array_equal(bandit.features(memory).token, [0, 0, 0, 1, 0, 0])


def test_environment_reward_is_the_mean_payment():
    bandit = Bandit(arms=2, players=4, horizon=4)
    world = BanditWorld(jnp.array([1, 1], jnp.int8), jnp.array([0.5, 0.5]))
    assert float(bandit.payoff(world, jnp.array([1, 0, 1, 1], jnp.int8))) == 0.75


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"arms": 0}, "arms is 0"),
        ({"players": 0}, "players is 0"),
        ({"players": 128}, "players is 128"),
        ({"horizon": 1}, "horizon is 1"),
        ({"mean_low": 0.9, "mean_high": 0.5}, "0.9 and 0.5"),
        ({"mean_low": -0.1}, "-0.1"),
        ({"mean_high": 1.5}, "1.5"),
        ({"mean_alpha": 0.0, "mean_beta": 1.0}, "mean_alpha is 0"),
        ({"mean_alpha": 1.0, "mean_beta": -1.0}, "mean_beta is -1"),
        ({"mean_alpha": 1.0}, "mean_beta is None"),
        ({"mean_alpha": float("nan"), "mean_beta": 1.0}, "mean_alpha is nan"),
        ({"capacity_concentration": 0.0}, "capacity_concentration"),
        ({"capacity_concentration": float("nan")}, "capacity_concentration"),
    ],
)
def test_impossible_bandits_are_refused(wrong, named):
    with pytest.raises(UserError, match=named.replace(".", r"\.")):
        Bandit(**{"arms": 2, "players": 2, "horizon": 3, **wrong})


# -- what critic and inference read


def test_team_tokens_hold_the_readings_at_each_load():
    """Three players, two arms: players 0 and 2 on arm 1 (one of them paid), player 1 alone on arm 0 (paid)."""
    bandit = Bandit(arms=2, players=3, horizon=5)
    memories = BanditMemory(jnp.array([1, 0, 1]), jnp.array([True, True, False]), jnp.ones(3, bool))
    token = bandit.team_features(memories).token
    plain = Bandit(arms=2, players=3, horizon=5, team_tokens="readings").team_features(memories).token
    np.testing.assert_array_equal(token[: plain.size], plain)
    paid, unpaid = token[plain.size :].reshape(2, 2, 3)  # arms by loads
    np.testing.assert_array_equal(paid, [[1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(unpaid, [[0, 0, 0], [0, 1, 0]])


def test_team_tokens_of_a_start_are_empty():
    bandit = Bandit(arms=2, players=3, horizon=5)
    memories = jax.vmap(bandit.init_memory)(jnp.arange(3), jnp.zeros(3, jnp.int8))
    assert not np.any(bandit.team_features(memories).token)


def test_files_from_before_there_were_loads_mean_readings():
    described = {"kind": "bandit", "arguments": {"arms": 2, "players": 3, "horizon": 5}}
    assert build(described).team_tokens == "readings"
    described["arguments"]["team_tokens"] = "loads"
    assert build(described).team_tokens == "loads"
