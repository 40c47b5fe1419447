"""Past measurements, as arrays from which a compiled program draws subsets."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer, Key

from icmape.errors import UserError
from icmape.zoo.hotspot.data.readings import Readings
from icmape.zoo.hotspot.region import OUTSIDE, Grid


class History(eqx.Module):
    """Readings sorted by year, each at a station; values are log(1 + concentration)."""

    values: Float[Array, "readings"]
    stations: Int[Array, "readings"]
    places: Float[Array, "stations 2"]  # in cells from the north-west corner
    first: tuple[int, ...] = eqx.field(static=True)  # where a year's readings begin
    count: tuple[int, ...] = eqx.field(static=True)
    years: tuple[int, ...] = eqx.field(static=True)
    most: int = eqx.field(static=True)  # readings in a year

    def subset(
        self, year: Integer[Array, ""], size: int, *, key: Key[Array, ""]
    ) -> tuple[Int[Array, "size"], Float[Array, "size"]]:
        """Stations and values of a random subset of a year's readings; `year` counts from the first one."""
        ranks = jax.random.uniform(key, (self.most,))
        _, chosen = jax.lax.top_k(jnp.where(jnp.arange(self.most) < jnp.asarray(self.count)[year], ranks, -1.0), size)
        rows = jnp.asarray(self.first)[year] + chosen
        return self.stations[rows], self.values[rows]

    def of_year(self, year: int) -> tuple[Int[np.ndarray, "readings"], Float[np.ndarray, "readings"]]:
        """Stations and values of all readings of a year."""
        rows = self.rows([year])
        return np.asarray(self.stations)[rows], np.asarray(self.values)[rows]

    def rows(self, years: Sequence[int]) -> Int[np.ndarray, "readings"]:
        """Row numbers of the readings of some years."""
        spans = zip(self.years, self.first, self.count, strict=False)
        ranges = [np.arange(first, first + count) for year, first, count in spans if year in years]
        return np.concatenate([np.zeros(0, int), *ranges])


def make_history(readings: Readings, grid: Grid) -> History:
    """The readings inside a region."""
    places = grid.places(readings.latitude, readings.longitude)
    inside = grid.cells(places) != OUTSIDE
    if not inside.any():
        extent = (
            f"latitudes {readings.latitude.min():.3f} to {readings.latitude.max():.3f}, longitudes "
            f"{readings.longitude.min():.3f} to {readings.longitude.max():.3f}"
            if len(readings)
            else "there are none"
        )
        raise UserError(
            f"none of the {len(readings):,} readings lies in the region (latitudes {grid.south} to {grid.north}, "
            f"longitudes {grid.west} to {grid.east}): {extent}. Set problem.latitudes and problem.longitudes to the "
            "region of these data, or give data of this one"
        )
    order = np.flatnonzero(inside)[np.argsort(readings.year[inside], kind="stable")]
    years, first, count = np.unique(readings.year[order], return_index=True, return_counts=True)
    unique, stations = np.unique(places[order], axis=0, return_inverse=True)
    return History(
        jnp.asarray(np.log1p(readings.value[order]), jnp.float32),
        jnp.asarray(stations.reshape(-1), jnp.int32),
        jnp.asarray(unique, jnp.float32),
        tuple(map(int, first)),
        tuple(map(int, count)),
        tuple(int(year) for year in years),
        int(count.max()),
    )


def no_history(size: int) -> History:
    """An empty history of the right shape, for use without data."""
    return History(jnp.zeros(size), jnp.zeros(size, jnp.int32), jnp.zeros((1, 2)), (0,), (size,), (), size)


def check_years(history: History, years: Sequence[int], size: int, name: str) -> None:
    """Refuse years with too few readings for a field."""
    counts = dict(zip(history.years, map(int, history.count), strict=True))
    poor = {year: counts.get(year, 0) for year in years if counts.get(year, 0) < size}
    if not years or poor:
        named = ", ".join(f"{year} ({count:,})" for year, count in poor.items()) or "none were given"
        enough = [year for year, count in counts.items() if count >= size]
        raise UserError(
            f"{name} must have at least {size} readings each in the region, as many as a field is fitted to; these do "
            f"not: {named}. Years with enough: {year_spans(enough) or 'none'}. Leave the poor ones out, or lower "
            "problem.fit"
        )


def year_spans(years: Sequence[int]) -> str:
    """2001-2018, 2020."""
    parts: list[list[int]] = []
    for year in sorted(years):
        if parts and year == parts[-1][1] + 1:
            parts[-1][1] = year
        else:
            parts.append([year, year])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
