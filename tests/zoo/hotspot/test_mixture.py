"""The mixture of years: Gaussian conditioning by the book, members that are draws, and the year that fits wins."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from icmape.errors import UserError
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.hotspot.mixture import LEAST, MixtureBelief, MixtureInference, YearMixture, mixture_of, query_means
from tests.support import once
from tests.zoo.hotspots import FROM_FILES, few_readings, small_hotspot, write

CELLS = 5


def mixture(means: np.ndarray, covariances: np.ndarray, noise: np.ndarray, members: int = 6, k: int = 2) -> YearMixture:
    """A model with these moments, whose members are draws from them."""
    chance = np.random.default_rng(9)
    drawn = [chance.multivariate_normal(m, c, members) for m, c in zip(means, covariances, strict=True)]
    parts = (np.zeros(len(means)), means, covariances, np.asarray(drawn))
    prior = MixtureBelief(*(jnp.asarray(part, jnp.float32) for part in parts), jnp.int32(0))
    return YearMixture(prior, jnp.asarray(noise, jnp.float32), k)


@cache
def moments(years: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    chance = np.random.default_rng(2)
    roots = chance.normal(size=(years, CELLS, CELLS))
    covariances = 0.3 * roots @ roots.transpose(0, 2, 1) + 0.05 * np.eye(CELLS)
    return chance.normal(size=(years, CELLS)), covariances, chance.uniform(0.02, 0.2, (years, CELLS))


told = jax.jit(lambda model, belief, cells, values: model.told(belief, cells, values))


def conditioned(mean, covariance, noise, cells, values) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean, covariance and log-density of the readings, with matrices written out."""
    look = np.eye(CELLS)[cells]
    total = look @ covariance @ look.T + np.diag(noise[cells])
    gain = covariance @ look.T @ np.linalg.inv(total)
    density = stats.multivariate_normal(look @ mean, total).logpdf(values)
    return mean + gain @ (values - look @ mean), covariance - gain @ look @ covariance, float(density)


@pytest.mark.parametrize("cells", [[3], [0, 4], [2, 2, 1]], ids=["one", "two", "one twice"])
def test_a_belief_is_conditioned_as_a_gaussian_is(cells):
    model, values = mixture(*moments()), np.array([0.4, -0.9, 1.3])[: len(cells)]
    after = told(model, model.prior, jnp.array(cells), jnp.asarray(values, jnp.float32))
    expected = [conditioned(*(part[year] for part in moments()), cells, values) for year in range(2)]
    for year, (mean, covariance, density) in enumerate(expected):
        np.testing.assert_allclose(after.means[year], mean, atol=2e-5)
        np.testing.assert_allclose(after.covariances[year], covariance, atol=2e-5)
        constant = 0.5 * len(cells) * np.log(2 * np.pi)  # the same for all years, and left out
        assert float(after.years[year]) == pytest.approx(density + constant, abs=2e-4)
    assert int(after.read) == 1


def test_several_queries_at_once_are_one_after_the_other():
    """Of the exact parts; members' noise is drawn anew at every turn."""
    model, cells, values = mixture(*moments()), jnp.array([1, 3, 1]), jnp.array([0.7, -0.2, 0.1])
    together, one_by_one = told(model, model.prior, cells, values), model.prior
    for cell, value in zip(cells, values, strict=True):
        one_by_one = told(model, one_by_one, cell[None], value[None])
    for exact in ("years", "means", "covariances"):
        np.testing.assert_allclose(getattr(one_by_one, exact), getattr(together, exact), atol=1e-4)


def test_members_are_draws_from_the_posterior():
    """20,000 of them after two turns: means within 5 standard errors (false alarm 1e-5), covariances within 5 %."""
    model = mixture(*(part[:1] for part in moments()), members=20_000)
    belief = model.prior
    for cells, values in (([0, 2], [1.0, -0.5]), ([2, 3], [0.2, 0.9])):
        belief = told(model, belief, jnp.array(cells), jnp.array(values))
    members, covariance = np.asarray(belief.members[0], float), np.asarray(belief.covariances[0])
    deviation = np.sqrt(np.diagonal(covariance))
    assert np.all(np.abs(members.mean(axis=0) - np.asarray(belief.means[0])) < 5 * deviation / np.sqrt(20_000))
    np.testing.assert_allclose(np.cov(members.T), covariance, atol=0.05 * deviation.max() ** 2)


def test_many_readings_leave_a_sound_belief():
    """240 of them, as in the longest episode of six crews: nothing breaks, variances stay positive and keep falling."""
    model = mixture(*moments())

    def read(belief: MixtureBelief, cell: jax.Array) -> tuple:
        after = model.told(belief, cell[None], jnp.array([0.3]))
        return after, jnp.diagonal(after.covariances, axis1=1, axis2=2)

    belief, variances = once(lambda: jax.lax.scan(read, model.prior, jnp.arange(240) % CELLS))
    assert all(np.all(np.isfinite(part)) for part in belief)
    assert np.all(np.asarray(variances) > 0)
    assert np.all(np.diff(np.asarray(variances), axis=0) < 1e-6)


# -- what it says of the hypotheses


def by_hand(weights: list[float], members: list, k: int) -> tuple[YearMixture, MixtureBelief]:
    fields = jnp.asarray(members, jnp.float32)
    years, _, cells = fields.shape
    belief = MixtureBelief(
        jnp.log(jnp.asarray(weights)), jnp.zeros((years, cells)), jnp.zeros((years, cells, cells)), fields, jnp.int32(0)
    )
    return YearMixture(belief, jnp.ones((years, cells)), k), belief


def test_chances_by_hand():
    """Years with probabilities 3/4 and 1/4, two members each; the two highest of four cells."""
    members = [[[4, 3, 2, 1], [4, 1, 3, 2]], [[1, 2, 3, 4], [9, 0, 0.5, 8]]]
    model, belief = by_hand([3.0, 1.0], members, k=2)
    among, chances, scores = once(lambda: (model.among(belief), model.chances(belief), model.scores(belief)))
    np.testing.assert_array_equal(among, [[[1, 1, 0, 0], [1, 0, 1, 0]], [[0, 0, 1, 1], [1, 0, 0, 1]]])
    expected = np.array([0.75 + 0.125, 0.375, 0.375 + 0.125, 0.25])
    np.testing.assert_allclose(chances, expected, rtol=1e-5)
    np.testing.assert_allclose(scores, np.log(expected / (1 - expected)), atol=1e-5)


def test_no_cell_is_given_up_or_taken_for_certain():
    model, belief = by_hand([1.0], [[[1, 2, 3], [1, 2, 3]]], k=1)
    chances, scores = once(lambda: (model.chances(belief), model.scores(belief)))
    np.testing.assert_allclose(chances, [LEAST, LEAST, 1 - LEAST], rtol=1e-5)
    assert np.all(np.isfinite(scores))


def test_with_years_far_apart_the_right_one_wins():
    """Level 0 with its peak in cell 0, level 3 with its peak in cell 4: two readings of the second settle it."""
    means = np.array([[0.5, 0, 0, 0, 0], [3, 3, 3, 3, 3.5]])
    model = mixture(means, np.array([0.02 * np.eye(CELLS)] * 2), np.full((2, CELLS), 0.1), members=40, k=1)
    assert np.ptp(np.asarray(model.chances(model.prior))[[0, 4]]) < 0.1
    after = told(model, model.prior, jnp.array([1, 2]), jnp.array([2.9, 3.2]))
    assert float(jax.nn.softmax(after.years)[1]) > 0.9999
    chances = np.asarray(model.chances(after))
    assert chances.argmax() == 4
    assert chances[4] > 0.9
    assert chances[0] < 0.1


# -- what readings could still tell


def joint(members: np.ndarray, weights: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Covariance of memberships and values together, over weighted members."""
    both = np.concatenate([among, members], axis=1)
    centred = both - weights @ both
    return centred.T @ (weights[:, None] * centred)


def test_an_outlook_is_the_covariance_of_memberships_and_values_and_is_conditioned_as_such():
    model = mixture(*moments(), members=30)
    belief = model.prior._replace(years=jnp.array([0.0, 1.0]))

    def look() -> tuple:
        outlook = model.outlook(belief)
        later = outlook.after(jnp.int32(3)).after(jnp.int32(0))
        return outlook, later, model.among(belief), [outlook.best(), later.best()]

    outlook, later, among, best = jax.tree.map(np.asarray, once(look))
    year = np.exp([0.0, 1.0]) / np.exp([0.0, 1.0]).sum()
    weights, members = np.repeat(year, 30) / 30, np.asarray(belief.members, float).reshape(60, CELLS)
    covariance = joint(members, weights, among.reshape(60, CELLS))
    noise = year @ moments()[2]
    np.testing.assert_allclose(outlook.noise, noise, rtol=1e-5)
    np.testing.assert_allclose(outlook.chance, weights @ among.reshape(60, CELLS), rtol=1e-5)
    for found, chosen, read in ((outlook, best[0], ()), (later, best[1], (3, 0))):
        left = covariance
        for cell in read:
            column = left[:, CELLS + cell]
            left = left - np.outer(column, column) / (column[CELLS + cell] + noise[cell])
        np.testing.assert_allclose(found.fields, left[CELLS:, CELLS:], atol=1e-5)
        np.testing.assert_allclose(found.among, left[:CELLS, CELLS:], atol=1e-5)
        gains = []  # by how much the variances of memberships fall, weighed by how likely each cell is
        for cell in range(CELLS):
            column = left[:, CELLS + cell]
            after = left - np.outer(column, column) / (column[CELLS + cell] + noise[cell])
            gains.append(outlook.chance @ (np.diagonal(left) - np.diagonal(after))[:CELLS])
        assert int(chosen) == int(np.argmax(gains))


# -- the model of a problem


@pytest.fixture(scope="module")
def model() -> YearMixture:
    return mixture_of(small_hotspot())


def test_the_prior_has_the_moments_of_every_years_fields(model):
    """Against 300 fields of other keys: means differ by 5 standard errors at most (false alarm 1e-4 together)."""
    problem = small_hotspot()
    keys = jax.random.split(jax.random.key(77), 300)
    worlds = [
        jax.tree.map(np.asarray, found)
        for found in once(
            lambda: [jax.vmap(lambda key, y=y: problem.world_of(jnp.int32(y), key=key))(keys) for y in (0, 3)]
        )
    ]
    for year, drawn in zip((0, 3), worlds, strict=True):
        deviation = drawn.mean.std(axis=0)
        error = deviation * np.sqrt(1 / 300 + 1 / 400)
        assert np.all(np.abs(drawn.mean.mean(axis=0) - np.asarray(model.prior.means[year])) < 5 * error)
        scale = np.outer(deviation, deviation)
        assert np.abs((np.cov(drawn.mean.T) - np.asarray(model.prior.covariances[year])) / scale).max() < 0.6
        np.testing.assert_allclose(model.noise[year], (drawn.deviation**2).mean(axis=0) / problem.repeats, rtol=0.1)
    np.testing.assert_array_equal(model.prior.years, np.zeros(4))
    members = np.asarray(model.prior.members)
    assert members.shape == (4, 48, 34)
    assert np.abs(members.mean(axis=1) - np.asarray(model.prior.means)).max() < 0.5


def test_an_inference_reads_logs_of_everyones_queries(model):
    readings = jnp.asarray([[1.0, 2.0, 4.0, 0.5, 0.0], [3.0, 3.0, 3.0, 3.0, 3.0]], jnp.float16)
    np.testing.assert_allclose(query_means(readings), np.log1p(np.asarray(readings, float)).mean(axis=1), rtol=1e-5)
    inference, cells, problem = MixtureInference(model), jnp.array([4, 20]), small_hotspot()
    after = once(lambda: inference.update(problem, inference.belief(problem), cells, readings))
    expected = told(model, model.prior, cells, query_means(readings))
    np.testing.assert_allclose(after.means, expected.means, rtol=1e-5)


def test_years_with_too_few_readings_for_a_field_are_refused(tmp_path):
    """A field of fifteen would take the ten that a year lacks from the years behind it, the test year among them."""
    readings = few_readings()
    kept = (readings.year != 2002) | (np.arange(75) < 30)
    assert kept.sum() == 55
    years = {"years": (2001,), "training_years": (1999, 2001, 2002)}
    problem = Hotspot(data=write(tmp_path, readings.where(kept)), **{**FROM_FILES, **years})
    with pytest.raises(UserError, match=r"problem.training_years must have at least 15 .*: 1999 \(0\), 2002 \(5\)\."):
        mixture_of(problem)
