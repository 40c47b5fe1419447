"""Synthetic measurements with the statistics of real ones, for use without a download.

In log(1 + concentration), variances by where they come from, on a grid of 20×20 cells:

| part | variance | |
|---|---|---|
| persistent field | 0.24 | Matérn-3/2, length 2.9 cells, the same in all years |
| station | 0.013 | own offset of every station |
| year field | 0.007 | Matérn-3/2 of the same length, a new one every year |
| reading | 0.038 | visit to visit |

around a mean of 0.52. Stations: 55 % scattered, 30 % along a line from north to south with an offset of -0.3 (the main
stem of a bay, visited three times as often), 15 % in one cluster (a city). Maryland's have these statistics.
"""

import numpy as np
from jaxtyping import Float

from icmape.zoo.hotspot.data.readings import Readings
from icmape.zoo.hotspot.region import Grid

STATIONS = 235
YEARS = range(2001, 2020)
VISITS = 1500  # a year
MEAN, OFFSET = 0.52, -0.3
LENGTH = 2.9
PERSISTENT, STATION, YEAR, READING = 0.24, 0.013, 0.007, 0.038  # variances
LINE, CLUSTER = 0.30, 0.15  # shares of the stations
OFTEN = 3  # times as many visits to a station on the line
DIGITS = 9  # of a field
WORKING = 0.6  # share of the scattered stations that are visited in a given year


def synthetic_readings(grid: Grid, seed: int) -> Readings:
    """Readings of the years 2001 to 2019 all over a region."""
    chance = np.random.default_rng([0x51E5, seed])
    places, on_line = _stations(grid, chance)
    root = _cholesky(_matern(places) + 1e-8 * np.eye(len(places)))

    def field(variance: float) -> Float[np.ndarray, "stations"]:
        drawn = np.sqrt(variance) * (root * chance.standard_normal(len(places))).sum(axis=1)
        return np.round(drawn, DIGITS)

    steady = MEAN + OFFSET * (on_line - on_line.mean()) + field(PERSISTENT)
    steady = steady + np.sqrt(STATION) * chance.standard_normal(len(places))
    stations, days, logs = [], [], []
    for year in YEARS:
        level = steady + field(YEAR)
        often = np.where(on_line, OFTEN, chance.random(len(places)) < WORKING).astype(float)
        visited = chance.choice(len(places), VISITS, p=often / often.sum())
        stations.append(visited)
        days.append(np.datetime64(f"{year}-01-01") + chance.integers(0, 365, VISITS))
        logs.append(level[visited] + np.sqrt(READING) * chance.standard_normal(VISITS))
    which = np.concatenate(stations)
    latitude = grid.north - places[:, 0] / grid.rows * (grid.north - grid.south)
    longitude = grid.west + places[:, 1] / grid.columns * (grid.east - grid.west)
    names = np.array([f"SYNTHETIC-{number:03d}" for number in range(len(places))])
    value = np.expm1(np.maximum(np.concatenate(logs), 0.0))
    return Readings(
        names[which], latitude[which], longitude[which], np.concatenate(days).astype("datetime64[D]"), value
    )


def _stations(grid: Grid, chance: np.random.Generator) -> tuple[Float[np.ndarray, "stations 2"], np.ndarray]:
    """Where they are, in cells from the north-west corner, and which are on the line."""
    size = np.array([grid.rows, grid.columns])
    line, cluster = round(LINE * STATIONS), round(CLUSTER * STATIONS)
    down = chance.uniform(0.1, 0.98, line)
    wiggle = 0.66 + 0.05 * np.sin(6 * down) + 0.012 * chance.standard_normal(line)
    city = np.array([0.28, 0.62]) + 0.035 * chance.standard_normal((cluster, 2))
    scattered = chance.uniform(0.01, 0.99, (STATIONS - line - cluster, 2))
    shares = np.concatenate([np.stack([down, wiggle], axis=1), city, scattered])
    return np.clip(shares, 0.005, 0.995) * size, np.arange(STATIONS) < line


def _matern(places: Float[np.ndarray, "stations 2"]) -> Float[np.ndarray, "stations stations"]:
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1) * np.sqrt(3) / LENGTH
    return (1 + apart) * np.exp(-apart)


def _cholesky(matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """The lower factor. NumPy's own, and its products of matrices, depend on the number of threads in the last bits."""
    root = np.zeros_like(matrix)
    for n in range(len(matrix)):
        left = matrix[n:, n] - (root[n:, :n] * root[n, :n]).sum(axis=1)
        root[n:, n] = left / np.sqrt(left[0])
    return root
