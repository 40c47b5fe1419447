"""Made-up measurements: their variances, stations and visits are the documented ones, and a seed is a history."""

from functools import cache

import numpy as np
import pytest

from icmape.zoo.hotspot import synthetic
from icmape.zoo.hotspot.data.readings import Readings
from icmape.zoo.hotspot.region import make_grid
from icmape.zoo.hotspot.synthetic import synthetic_readings

GRID = make_grid((37.915, 39.719), (-79.179, -75.571), 20, 20)
SEEDS = 12


@cache
def unclipped() -> list[Readings]:
    """Histories five units higher, where nothing is clipped at 0 and variances can be told from readings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "MEAN", 5.0)
        return [synthetic_readings(GRID, seed) for seed in range(SEEDS)]


def levels(readings: Readings) -> tuple[np.ndarray, np.ndarray]:
    """Mean log of every station in every year, and how many readings it is of (0: none)."""
    station = np.array([int(name.removeprefix("SYNTHETIC-")) for name in readings.station])
    year, count, total = readings.year - 2001, np.zeros((235, 19)), np.zeros((235, 19))
    np.add.at(count, (station, year), 1)
    np.add.at(total, (station, year), np.log1p(readings.value))
    return total / np.maximum(count, 1), count


def places(readings: Readings) -> np.ndarray:
    """Where stations are, in cells."""
    names, first = np.unique(readings.station, return_index=True)
    assert len(names) == 235
    return GRID.places(readings.latitude[first], readings.longitude[first])


def test_a_seed_is_a_history():
    one, again, other = (synthetic_readings(GRID, seed) for seed in (4, 4, 5))
    for name, values in vars(one).items():
        np.testing.assert_array_equal(values, getattr(again, name))
    assert not np.array_equal(one.value, other.value)
    assert not np.array_equal(one.latitude, other.latitude)


def test_every_year_has_its_visits_inside_the_region():
    readings = synthetic_readings(GRID, 0)
    assert np.bincount(readings.year - 2001).tolist() == [1500] * 19
    assert np.all(GRID.cells(GRID.places(readings.latitude, readings.longitude)) >= 0)
    assert readings.value.min() == 0  # clipped, not negative
    assert readings.day.dtype == "datetime64[D]"


def test_any_region_and_grid_will_do():
    """Seeds scatter stations by shares of the grid: as many rows and columns as one likes, anywhere."""
    south = make_grid((-40.0, -38.0), (170.0, 179.0), 5, 9)
    readings = synthetic_readings(south, 1)
    cells = south.cells(south.places(readings.latitude, readings.longitude))
    assert cells.min() >= 0
    assert len(np.unique(cells)) > 30


def test_concentrations_are_about_as_high_as_nitrates():
    """Median of e^0.52 - 1 = 0.7 mg/L within a third: seeds differ in their persistent field, here the mean of 8."""
    medians = [np.median(np.log1p(synthetic_readings(GRID, seed).value)) for seed in range(8)]
    assert np.mean(medians) == pytest.approx(0.52 - 0.3 * 0.3, abs=0.2)  # visits favour the line, which lies lower


def test_visits_scatter_by_the_documented_variance():
    """Within station and year: 12 × 28,500 readings, standard error 0.3 %."""
    squares = freedom = 0.0
    for readings in unclipped():
        mean, count = levels(readings)
        squares += (np.log1p(readings.value) ** 2).sum() - (count * mean**2).sum()
        freedom += (count - 1)[count > 0].sum()
    assert squares / freedom == pytest.approx(0.038, rel=0.01)


def test_years_differ_by_the_documented_variance():
    """A station's years around its mean, less what visits explain: 228 fields, standard error about 5 %."""
    found = []
    for readings in unclipped():
        mean, count = levels(readings)
        often = np.where((count >= 8).sum(axis=1) >= 10)[0]
        for station in often:
            years = count[station] >= 8
            found.append(mean[station, years].var(ddof=1) - (0.038 / count[station, years]).mean())
    assert np.mean(found) == pytest.approx(0.007, rel=0.15)


@cache
def steady() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of each seed: places, mean levels, and which stations are on the line."""
    found = []
    for readings in unclipped():
        mean, count = levels(readings)
        found.append((places(readings), (mean * count).sum(axis=1) / count.sum(axis=1), np.arange(235) < 70))
    return found


def test_the_persistent_field_has_its_variance_and_its_length():
    """Half the mean square of differences between stations, by distance: 0.24 (1 - ρ(d)) + 0.013, ρ Matérn-3/2 of 2.9
    cells. 12 fields with some twenty patches each: standard errors up to 10 %."""
    apart, half = [], []
    for where, level, on_line in steady():
        where, level = where[~on_line], level[~on_line]
        one, other = np.triu_indices(len(level), 1)
        apart.append(np.linalg.norm(where[one] - where[other], axis=1))
        half.append((level[one] - level[other]) ** 2 / 2)
    distance, squares = np.concatenate(apart), np.concatenate(half)
    for near, far in ((0.0, 0.3), (0.5, 1.0), (1.5, 2.5), (3.0, 4.0), (9.0, 12.0)):
        chosen = (distance >= near) & (distance < far)
        scaled = np.sqrt(3) * distance[chosen] / 2.9
        expected = np.mean(0.24 * (1 - (1 + scaled) * np.exp(-scaled))) + 0.013
        assert squares[chosen].mean() == pytest.approx(expected, rel=0.25), (near, far)


def test_the_line_lies_lower_and_is_visited_three_times_as_often():
    """0.3 below, with a standard error of 0.08 over 12 seeds; visits 3 : 0.6 for a scattered station."""
    below, visits = [], []
    for (_, level, on_line), readings in zip(steady(), unclipped(), strict=True):
        below.append(level[on_line].mean() - level[~on_line].mean())
        count = levels(readings)[1].sum(axis=1)
        visits.append(count[on_line].mean() / count[~on_line].mean())
    assert np.mean(below) == pytest.approx(-0.3, abs=0.2)
    assert np.mean(visits) == pytest.approx(3 / 0.6, rel=0.05)


def test_stations_are_a_line_a_city_and_the_rest():
    where, _, on_line = steady()[0]
    assert on_line.mean() == pytest.approx(0.30, abs=0.005)
    assert np.ptp(where[on_line, 0]) > 15  # from north to south,
    assert where[on_line, 1].std() < 1.5  # and narrow
    city = np.linalg.norm(where - [0.28 * 20, 0.62 * 20], axis=1) < 2.1
    assert (city & ~on_line).mean() == pytest.approx(0.15, abs=0.03)
