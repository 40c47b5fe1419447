"""Fields: the Gaussian process is the textbook's, and subsets of a year are fair, its own and without repeats."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tinygp
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from icmape.zoo.hotspot.data.readings import Readings
from icmape.zoo.hotspot.fields import Field, FieldModel
from icmape.zoo.hotspot.history import History, make_history
from icmape.zoo.hotspot.region import Grid
from tests.support import once
from tests.zoo.hotspots import YEARS, small_hotspot

LENGTH, VARIANCE, NOISE = 2.0, 0.85, 0.10
GRID = Grid(0.0, 8.0, 0.0, 8.0, 8, 8)  # a degree to a cell
PLACES = np.random.default_rng(3).uniform(0.0, 8.0, (12, 2))
CELLS = GRID.middles(np.arange(64))


def history(counts: dict[int, int], places: np.ndarray = PLACES) -> History:
    """So many readings in each year, in turn at all stations, numbered from 0: its concentration is its number."""
    number = np.arange(sum(counts.values()))
    where = places[number % len(places)]
    year = np.repeat(list(counts), list(counts.values()))
    day = np.array([f"{each}-07-01" for each in year], "datetime64[D]")
    names = np.array([f"station {n % len(places)}" for n in number])
    return make_history(Readings(names, 8.0 - where[:, 0], where[:, 1], day, number.astype(float)), GRID)


def model(places: np.ndarray = PLACES) -> FieldModel:
    made = history({2001: len(places)}, places)
    return FieldModel(made, jnp.asarray(CELLS, jnp.float32), LENGTH, VARIANCE, NOISE)


@pytest.fixture(scope="module")
def fitted() -> tuple[np.ndarray, np.ndarray, Field]:
    """Forty readings at twelve stations, some of which are read often."""
    chance = np.random.default_rng(0)
    stations, values = chance.integers(0, 12, 40), chance.normal(0.7, 0.6, 40)
    found = once(lambda: model().fit(jnp.asarray(stations, jnp.int32), jnp.asarray(values, jnp.float32)))
    places = np.asarray(history({2001: 12}).places, float)[stations]
    return places, values, Field(*map(np.asarray, found))


def test_fields_are_those_of_scikit_learn(fitted):
    places, values, found = fitted
    kernel = ConstantKernel(VARIANCE) * Matern(LENGTH, nu=1.5)
    theirs = GaussianProcessRegressor(kernel, alpha=NOISE, optimizer=None).fit(places, values - values.mean())
    mean, deviation = theirs.predict(CELLS, return_std=True)
    np.testing.assert_allclose(found.mean, values.mean() + mean, atol=5e-5)
    np.testing.assert_allclose(found.deviation, deviation, atol=5e-5)
    assert found.mean.std() > 0.1  # and there is something to see
    assert np.ptp(found.deviation) > 0.2


def test_fields_are_those_of_tinygp(fitted):
    places, values, found = fitted
    kernel = VARIANCE * tinygp.kernels.Matern32(LENGTH, distance=tinygp.kernels.distance.L2Distance())

    def condition() -> tuple:
        process = tinygp.GaussianProcess(kernel, jnp.asarray(places), diag=NOISE, mean=values.mean())
        theirs = process.condition(jnp.asarray(values), jnp.asarray(CELLS), diag=jnp.full(64, 1e-6)).gp
        return theirs.loc, theirs.variance

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        mean, variance = map(np.asarray, once(condition))
    np.testing.assert_allclose(found.mean, mean, atol=5e-5)
    np.testing.assert_allclose(found.deviation, np.sqrt(variance), atol=5e-5)


def test_one_reading_by_hand():
    """The mean is the reading's everywhere; the variance falls by k(d)²/(0.85 + 0.10), d cells from the station."""
    field = once(lambda: model(np.array([[2.5, 3.5]])).fit(jnp.zeros(1, jnp.int32), jnp.array([1.25])))
    np.testing.assert_allclose(field.mean, 1.25, rtol=1e-6)
    here, further = field.deviation[2 * 8 + 3], field.deviation[2 * 8 + 5]  # at the station, and two cells east of it
    assert float(here) == pytest.approx(np.sqrt(0.85 - 0.85**2 / 0.95), abs=1e-5)
    between = 0.85 * (1 + np.sqrt(3)) * np.exp(-np.sqrt(3))
    assert float(further) == pytest.approx(np.sqrt(0.85 - between**2 / 0.95), abs=1e-5)


def test_two_readings_far_apart_by_hand():
    """Each pulls its own cell by 0.85/0.95 of the way from the mean of both, and two in one place by 1.70/1.80."""
    apart = np.array([[0.5, 0.5], [0.5, 40.5]])
    places = Grid(0.0, 8.0, 0.0, 80.0, 8, 80)
    day = np.array(["2001-01-01"] * 2, "datetime64[D]")
    made = make_history(Readings(np.array(["a", "b"]), 8.0 - apart[:, 0], apart[:, 1], day, np.zeros(2)), places)

    def both() -> tuple:
        fields = FieldModel(made, jnp.asarray(apart, jnp.float32), LENGTH, VARIANCE, NOISE)
        alone = fields.fit(jnp.array([0, 1]), jnp.array([2.0, 1.0]))
        return alone, fields.fit(jnp.array([0, 0, 1, 1]), jnp.array([2.5, 1.5, 1.5, 0.5]))

    alone, twice = once(both)
    np.testing.assert_allclose(alone.mean, [1.5 + 0.5 * 0.85 / 0.95, 1.5 - 0.5 * 0.85 / 0.95], rtol=1e-5)
    np.testing.assert_allclose(twice.mean, [1.5 + 0.5 * 1.7 / 1.8, 1.5 - 0.5 * 1.7 / 1.8], rtol=1e-5)
    np.testing.assert_allclose(twice.deviation, np.sqrt(0.85 - 0.85**2 * 2 / 1.8), rtol=1e-4)


def test_readings_keep_their_place_their_year_and_their_value():
    """Given in any order; values become logs, and two readings of one place have one station."""
    made = history({2004: 5, 2001: 13, 2002: 7})
    assert (made.years, made.most) == ((2001, 2002, 2004), 13)
    numbers = {2004: range(5), 2001: range(5, 18), 2002: range(18, 25)}
    for year, expected in numbers.items():
        stations, values = made.of_year(year)
        np.testing.assert_allclose(np.expm1(np.asarray(values)), list(expected), rtol=1e-5)
        places = np.asarray(made.places)[np.asarray(stations)]
        np.testing.assert_allclose(places, PLACES[np.asarray(expected) % 12], atol=1e-5)
    assert made.places.shape == (12, 2)


# -- subsets


COUNTS = {2001: 7, 2002: 12, 2003: 9, 2004: 5}


@pytest.fixture(scope="module")
def subsets() -> dict[int, np.ndarray]:
    """The readings in 6,000 subsets of five, for every year."""
    made = history(COUNTS)
    keys = jax.random.split(jax.random.key(8), 6000)
    draw = jax.jit(jax.vmap(lambda key, year: made.subset(year, 5, key=key)[1], (0, None)))
    return {year: np.expm1(np.asarray(draw(keys, jnp.int32(i)))).round().astype(int) for i, year in enumerate(COUNTS)}


def test_no_reading_is_drawn_twice_and_none_is_of_another_year(subsets):
    first = 0
    for year, count in COUNTS.items():
        drawn = np.sort(subsets[year], axis=1)
        assert np.all(np.diff(drawn, axis=1) > 0)
        assert drawn.min() == first
        assert drawn.max() == first + count - 1
        first += count


def test_a_year_with_just_enough_readings_gives_all_of_them(subsets):
    assert np.all(np.sort(subsets[2004], axis=1) == np.arange(28, 33))


@pytest.mark.parametrize("year", [2001, 2002, 2003])
def test_every_reading_and_every_pair_is_equally_likely(subsets, year):
    """χ² of how often each reading is drawn (5 of n without replacement), false alarm one in a million.

    Pairs, too, within 5 standard errors each (false alarm 4e-5 for all): a subset is more than its readings one by one.
    """
    count, drawn = COUNTS[year], subsets[year] - min(map(min, subsets[year]))
    inside = np.zeros((6000, count))
    np.put_along_axis(inside, drawn, 1, axis=1)
    share = 5 / count
    excess = ((inside.sum(axis=0) - 6000 * share) ** 2).sum() / (6000 * share * (1 - share))
    assert excess * (count - 1) / count < stats.chi2.isf(1e-6, count - 1)
    together = (inside.T @ inside)[np.triu_indices(count, 1)] / 6000
    likely = 5 * 4 / (count * (count - 1))
    assert np.abs(together - likely).max() < 5 * np.sqrt(likely * (1 - likely) / 6000)


# -- worlds


@pytest.fixture(scope="module")
def draw():
    """Worlds of a problem, 2,000 for each seed."""
    many = jax.jit(lambda problem, keys: jax.vmap(lambda key: problem.sample(key=key))(keys))
    return lambda problem, seed=0: jax.tree.map(np.asarray, many(problem, jax.random.split(jax.random.key(seed), 2000)))


def test_a_key_is_a_field(draw):
    one, again, other = draw(small_hotspot()), draw(small_hotspot()), draw(small_hotspot(), seed=1)
    np.testing.assert_array_equal(one.mean, again.mean)
    np.testing.assert_array_equal(one.year, again.year)
    assert len(np.unique(np.concatenate([one.mean, other.mean]), axis=0)) == 4000


@pytest.mark.parametrize(
    "shares", [dict.fromkeys(YEARS, 0.25), {2001: 0.2, 2005: 0.5, 2019: 0.3}], ids=["as built", "any others"]
)
def test_years_are_drawn_by_weight(draw, shares):
    """2,000 worlds; false alarm one in a million."""
    known = small_hotspot().fields.history.years
    weights = jnp.array([shares.get(year, 0.0) for year in known])
    problem = small_hotspot() if 2002 in shares else eqx.tree_at(lambda p: p.weights, small_hotspot(), 7 * weights)
    counts, expected = np.bincount(draw(problem).year, minlength=len(known)), 2000 * np.asarray(weights)
    assert np.all(counts[expected == 0] == 0)
    excess = ((counts - expected)[expected > 0] ** 2 / expected[expected > 0]).sum()
    assert excess < stats.chi2.isf(1e-6, len(shares) - 1)


def test_the_years_of_a_problem_are_equally_likely_and_no_others_are():
    weights = np.asarray(small_hotspot(years=(2019, 2002)).weights)
    assert dict(zip(range(2001, 2020), weights.tolist(), strict=True)) == {
        year: float(year in (2002, 2019)) for year in range(2001, 2020)
    }
