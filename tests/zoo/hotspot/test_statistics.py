"""The table of years: counts, variances in closed form, and what a constant answer is worth."""

from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.errors import UserError
from icmape.zoo.hotspot.data.readings import Readings
from icmape.zoo.hotspot.hotspot import Hotspot
from icmape.zoo.hotspot.statistics import (
    YearsSummary,
    draw_fields,
    map_year,
    rich_years,
    station_averages,
    summarise_years,
)
from tests.zoo.hotspots import REGION, write

LENGTH, VARIANCE, NOISE = 1.5, 0.8, 0.2
FIT = 12
FIELDS = 4
SOUTH_WEST, SOUTH_EAST, NORTH_EAST = 6, 8, 2  # cells of a 3×3 grid
PLACES = {SOUTH_WEST: (38.1, -76.9), SOUTH_EAST: (38.2, -76.1), NORTH_EAST: (38.9, -76.2)}


def readings(*rows: tuple[int, int, float, int]) -> Readings:
    """Year, cell, value and how often."""
    year, cell, value, count = (np.array(column) for column in zip(*rows, strict=True))
    places = np.array([PLACES[int(one)] for one in cell])
    days = np.array([f"{one}-06-01" for one in year], "datetime64[D]")
    names = np.array([f"S{one}" for one in cell])
    return Readings(
        *(np.repeat(column, count) for column in (names, places[:, 0], places[:, 1], days, value.astype(float)))
    )


@pytest.fixture(scope="module")
def handmade(tmp_path_factory: pytest.TempPathFactory) -> Hotspot:
    """Two training years with the highest place in the south-west, and others."""
    rows = readings(
        (2001, SOUTH_WEST, 5.0, 20), (2001, SOUTH_EAST, 1.0, 20),
        (2002, SOUTH_WEST, 5.0, 20), (2002, NORTH_EAST, 1.0, 20),
        (2018, SOUTH_EAST, 2.0, 5), (2018, SOUTH_EAST, 3.0, 6),  # too few for a field
        (2019, SOUTH_WEST, 1.0, 20), (2019, NORTH_EAST, 5.0, 20),
        (2020, SOUTH_EAST, 0.5, 14), (2020, SOUTH_EAST, 1.5, 1),
    )  # fmt: skip
    return Hotspot(
        data=write(Path(tmp_path_factory.mktemp("handmade")), rows), **REGION, fit=FIT, k=1, years=(2001,),
        training_years=(2001, 2002, 2018), length=LENGTH, variance=VARIANCE, noise=NOISE,
    )  # fmt: skip


@pytest.fixture(scope="module")
def summary(handmade: Hotspot) -> YearsSummary:
    return summarise_years(handmade, FIELDS)


def matern(apart: float) -> float:
    scaled = np.sqrt(3) * apart / LENGTH
    return VARIANCE * float((1 + scaled) * np.exp(-scaled))


def test_a_year_is_counted_in_readings_stations_and_cells(handmade: Hotspot, summary: YearsSummary) -> None:
    rows = {row.year: row for row in summary.years}
    assert [(row.readings, row.stations, row.cells) for row in rows.values()] == [
        (40, 2, 2), (40, 2, 2), (11, 1, 1), (40, 2, 2), (15, 1, 1)
    ]  # fmt: skip
    assert [row.training for row in rows.values()] == [True, True, True, False, False]
    assert rich_years(handmade.fields.history, FIT) == [2001, 2002, 2019, 2020]


def test_the_variance_of_a_single_station_is_the_closed_form(handmade: Hotspot, summary: YearsSummary) -> None:
    row = summary.years[-1]
    station = handmade.grid.places(*(np.array([degree]) for degree in PLACES[SOUTH_EAST]))[0]
    apart = np.linalg.norm(handmade.grid.middles(handmade.cells) - station, axis=1)
    expected = [VARIANCE - matern(distance) ** 2 / (VARIANCE + NOISE / FIT) for distance in apart.tolist()]
    assert row.variance == pytest.approx(np.mean(expected), rel=1e-4)
    assert row.sigma == pytest.approx(np.sqrt(np.mean(expected)), rel=1e-4)


def test_a_constant_answer_is_chosen_in_training_years_and_judged_in_each(
    handmade: Hotspot, summary: YearsSummary
) -> None:
    assert summary.constant is not None
    assert handmade.cells[summary.constant] == SOUTH_WEST
    assert [row.no_data_accuracy for row in summary.years[:4]] == [1.0, 1.0, None, 0.0]


def test_a_year_without_readings_for_a_field_has_counts_only(summary: YearsSummary) -> None:
    poor = summary.years[2]
    assert (poor.year, poor.variance, poor.sigma, poor.no_data_accuracy) == (2018, None, None, None)
    assert [row.year for row in summary.of(training=True)] == [2001, 2002]


def test_the_cap_of_readings_does_not_touch_the_table(handmade: Hotspot, summary: YearsSummary) -> None:
    capped = eqx.tree_at(lambda problem: problem.cap, handmade, jnp.float32(0.01))
    assert [row.variance for row in summarise_years(capped, FIELDS).years] == [row.variance for row in summary.years]


def test_every_field_has_a_subset_of_its_own(handmade: Hotspot) -> None:
    drawn = draw_fields(handmade.fields, [2001, 2019], FIT, 30)
    assert drawn.mean.shape == (2, 30, handmade.actions)
    shares = 12 - np.arange(13)  # of the subset in the south-west: the field there is one of thirteen
    assert 3 <= len(np.unique(np.asarray(drawn.mean[0, :, 0]).round(4))) <= len(shares)


def test_a_station_has_one_average_and_it_is_of_concentrations(handmade: Hotspot) -> None:
    stations, values = station_averages(handmade.fields.history, 2020)
    assert len(stations) == 1
    assert np.expm1(values[0]) == pytest.approx((14 * 0.5 + 1.5) / 15, rel=1e-5)


def test_a_years_map_is_fitted_to_one_average_per_station(handmade: Hotspot) -> None:
    drawn = map_year(handmade, 2018)
    mean = np.expm1(np.log1p((5 * 2.0 + 6 * 3.0) / 11))  # a single reading is its own centre: the field is flat
    np.testing.assert_allclose(drawn.concentration, mean, rtol=1e-4)
    assert drawn.training
    np.testing.assert_allclose(drawn.places, handmade.grid.places(np.array([38.2]), np.array([-76.1])), rtol=1e-5)


def test_all_readings_make_a_field_better_known(handmade: Hotspot) -> None:
    averages, everything = (map_year(handmade, 2019, flag).field for flag in (False, True))
    assert np.all(np.asarray(everything.deviation) < np.asarray(averages.deviation))


def test_what_cannot_be_drawn_is_refused(handmade: Hotspot) -> None:
    with pytest.raises(UserError, match="no readings in 1999: years with readings are 2001, 2002, 2018"):
        map_year(handmade, 1999)
    with pytest.raises(UserError, match="at least one field"):
        summarise_years(handmade, fields=0)
