"""Kernels are found again in readings that they made, and scaled to what is asked for."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from icmape.errors import UserError
from icmape.zoo.hotspot.hyperparameters import (
    BOUNDS,
    Fitted,
    Kernel,
    Search,
    Subsets,
    choose_kernel,
    draw_subsets,
    kernel_variances,
    log_likelihood,
    match_variance,
    most_likely,
)
from tests.zoo.hotspots import YEARS, small_hotspot

TRUE = Kernel(2.5, 0.3, 0.2)


def matern(places: np.ndarray, kernel: Kernel) -> np.ndarray:
    scaled = np.sqrt(3) / kernel.length * np.linalg.norm(places[:, None] - places[None], axis=-1)
    return kernel.variance * ((1 + scaled) * np.exp(-scaled) + kernel.ratio * np.eye(len(places)))


@cache
def made(subsets: int = 16, readings: int = 60) -> Subsets:
    """Independent fields, each read at random places of a 12×12 grid."""
    chance = np.random.default_rng(11)
    places = chance.uniform(0, 12, (subsets, readings, 2))
    values = [chance.multivariate_normal(np.full(readings, 0.5), matern(one, TRUE)) for one in places]
    return Subsets(jnp.asarray(places, jnp.float32), jnp.asarray(np.array(values), jnp.float32))


@cache
def found() -> Fitted:
    return most_likely(made())


def test_the_likelihood_is_that_of_a_normal_distribution() -> None:
    subsets = made()
    expected = [
        multivariate_normal(np.full(60, np.mean(values)), matern(np.asarray(places, float), TRUE)).logpdf(values)
        for places, values in zip(subsets.places[:3], np.asarray(subsets.values[:3], float), strict=True)
    ]
    given = jax.jit(log_likelihood)(*map(jnp.float32, TRUE), Subsets(subsets.places[:3], subsets.values[:3]))
    assert float(given) == pytest.approx(sum(expected) / 180, abs=1e-4)


def test_maximum_likelihood_finds_the_kernel_that_made_the_readings() -> None:
    fitted = found()
    # 16 fields of 12×12 cells: the standard errors are about a tenth of each
    assert fitted.kernel.length == pytest.approx(TRUE.length, rel=0.3)
    assert fitted.kernel.variance == pytest.approx(TRUE.variance, rel=0.3)
    assert fitted.kernel.noise == pytest.approx(TRUE.noise, rel=0.2)
    assert fitted.likelihood >= float(jax.jit(log_likelihood)(*map(jnp.float32, TRUE), made())), "it is a maximum"
    assert fitted.kernel.bounded == []


def test_what_is_held_stays_and_the_rest_makes_the_best_of_it() -> None:
    free, held = found(), most_likely(made(), length=1.0, ratio=0.5)
    assert (held.kernel.length, held.kernel.ratio) == (1.0, 0.5)
    assert held.likelihood < free.likelihood


def test_what_the_bounds_of_the_search_decided_is_named() -> None:
    assert Kernel(1.0, 1.0, BOUNDS["ratio"][1]).bounded == ["ratio"]
    assert Kernel(BOUNDS["length"][0], BOUNDS["variance"][0], 0.1).bounded == ["length", "variance"]


def test_subsets_are_of_their_years_and_take_no_reading_twice() -> None:
    history = small_hotspot().fields.history
    subsets = draw_subsets(history, [2002, 2004], size=50, subsets=3, seed=1)
    assert subsets.values.shape == (6, 50)
    of_years = [{*history.of_year(year)[1].tolist()} for year in (2002, 2004)]
    for number, values in enumerate(np.asarray(subsets.values).tolist()):
        assert {*values} <= of_years[number // 3]
    again, other = (draw_subsets(history, [2002, 2004], 50, 3, seed) for seed in (1, 2))
    np.testing.assert_array_equal(again.values, subsets.values)
    assert not np.array_equal(other.values, subsets.values)


def test_a_matched_kernel_has_the_variance_asked_for_and_the_same_shape() -> None:
    problem, kernel = small_hotspot(), Kernel(1.7, 0.4, 0.25)
    matched = match_variance(problem, kernel, 0.123, YEARS, fields=5)
    assert (matched.length, matched.ratio) == (kernel.length, kernel.ratio)
    assert np.mean(list(kernel_variances(problem, matched, YEARS, 5).values())) == pytest.approx(0.123, rel=1e-4)
    before, after = (kernel_variances(problem, one, YEARS, 5) for one in (kernel, matched))
    shares = [after[year] / before[year] for year in YEARS]
    np.testing.assert_allclose(shares, matched.variance / kernel.variance, rtol=1e-3)


def test_a_choice_says_what_it_gives() -> None:
    problem = small_hotspot()
    choice = choose_kernel(
        problem, [2001, 2003, 1999], Search(readings=40, subsets=2, length=1.5, target=0.2), fields=5
    )
    assert choice.learned == (2001, 2003)
    assert set(choice.variances) == {2001, 2003}
    assert choice.variance == pytest.approx(0.2, rel=1e-3)  # four digits are written down
    assert choice.kernel.length == choice.likely.kernel.length == 1.5
    assert choice.kernel.ratio == pytest.approx(choice.likely.kernel.ratio, rel=1e-3)


def test_what_cannot_be_chosen_is_refused() -> None:
    problem = small_hotspot()
    with pytest.raises(UserError, match=r"none of the chosen years has 40 readings; there are 2001 \(1,500\)"):
        choose_kernel(problem, [1999], Search(readings=40))
    with pytest.raises(UserError, match="length must be above 0; given 0"):
        most_likely(made(), length=0.0)
    with pytest.raises(UserError, match="target of the variance must be above 0"):
        match_variance(problem, TRUE, -1.0, YEARS)
