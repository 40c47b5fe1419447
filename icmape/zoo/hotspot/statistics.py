"""Statistics of the years of a history: numbers of readings, and posterior variances of fields."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from icmape.errors import UserError
from icmape.zoo.hotspot.fields import Field, FieldModel
from icmape.zoo.hotspot.history import History
from icmape.zoo.hotspot.hotspot import Hotspot

FIELDS = 100  # of each year, as in the paper
BATCH = 25  # fields that are fitted at once
SEED = 0x7AB1E


class YearSummary(NamedTuple):
    """A row of the table of years."""

    year: int
    training: bool
    readings: int
    stations: int  # places: stations at the same coordinates are one
    cells: int  # with readings in this year
    variance: float | None  # of the field given some readings; mean over fields and valid cells
    no_data_accuracy: float | None  # of the one cell that is right most often in training years

    @property
    def sigma(self) -> float | None:
        """Square root of the variance, which is not the mean of the deviations."""
        return None if self.variance is None else math.sqrt(self.variance)


class YearsSummary(NamedTuple):
    """The table, and the best constant answer."""

    years: tuple[YearSummary, ...]
    constant: int | None  # counted among the valid cells; none where no training year has enough readings

    def of(self, training: bool) -> list[YearSummary]:
        """Training or test years that fields can be fitted in."""
        return [row for row in self.years if row.training == training and row.variance is not None]


def summarise_years(problem: Hotspot, fields: int = FIELDS) -> YearsSummary:
    """The table of a problem's history; a year with too few readings for a field has counts only."""
    history = problem.fields.history
    enough = rich_years(history, problem.fit)
    drawn = draw_fields(problem.fields, enough, problem.fit, fields)
    variance = _variances(drawn, enough)
    highest = dict(zip(enough, jax.lax.top_k(drawn.mean, problem.k)[1], strict=True))
    constant = _constant(problem, [highest[year] for year in problem.training_years if year in highest])
    right = {} if constant is None else {year: _share(cells, constant) for year, cells in highest.items()}
    rows = (
        YearSummary(
            year, year in problem.training_years, *_counts(problem, year), variance.get(year), right.get(year)
        )
        for year in history.years
    )  # fmt: skip
    return YearsSummary(tuple(rows), constant)


def rich_years(history: History, size: int) -> list[int]:
    """Years with readings for a field."""
    return [year for year, count in zip(history.years, map(int, history.count), strict=True) if count >= size]


def draw_fields(model: FieldModel, years: Sequence[int], size: int, fields: int = FIELDS) -> Field:
    """Fields of some years, each fitted to a random subset of `size` readings: years, fields, cells."""
    if fields < 1:
        raise UserError(f"give at least one field a year; given {fields}")
    history_years = model.history.years
    return _draw_fields(model, jnp.asarray([history_years.index(year) for year in years], jnp.int32), size, fields)


@eqx.filter_jit
def _draw_fields(model: FieldModel, years: Int[Array, "years"], size: int, fields: int) -> Field:
    of_year = jax.vmap(lambda year: jax.random.split(jax.random.fold_in(jax.random.key(SEED), year), fields))
    keys, which = of_year(years).reshape(-1), jnp.repeat(years, fields)
    drawn = jax.lax.map(lambda pair: model.draw(pair[0], size, key=pair[1]), (which, keys), batch_size=BATCH)
    return Field(*(part.reshape(len(years), fields, -1) for part in drawn))


def average_variances(model: FieldModel, years: Sequence[int], size: int, fields: int = FIELDS) -> dict[int, float]:
    """Mean posterior variance over fields and cells, by year."""
    return _variances(draw_fields(model, years, size, fields), years)


def _variances(drawn: Field, years: Sequence[int]) -> dict[int, float]:
    return dict(zip(years, np.asarray(jnp.mean(drawn.deviation**2, axis=(1, 2))).tolist(), strict=True))


class YearMap(NamedTuple):
    """One field of a whole year, and where it was measured."""

    year: int
    training: bool
    field: Field  # in the valid cells
    places: Float[np.ndarray, "stations 2"]  # in cells from the north-west corner

    @property
    def concentration(self) -> Float[np.ndarray, "cells"]:
        """The field in mg/L."""
        return np.expm1(np.maximum(np.asarray(self.field.mean), 0.0))


def map_year(problem: Hotspot, year: int, all_readings: bool = False) -> YearMap:
    """The field fitted to a year's average at every station, or to all its readings."""
    history = problem.fields.history
    if year not in history.years:
        raise UserError(f"no readings in {year}: years with readings are {', '.join(map(str, history.years))}")
    stations, values = history.of_year(year) if all_readings else station_averages(history, year)
    field = _fit(problem.fields, jnp.asarray(stations), jnp.asarray(values))
    places = np.asarray(history.places, float)[np.unique(stations)]
    return YearMap(year, year in problem.training_years, field, places)


@eqx.filter_jit
def _fit(model: FieldModel, stations: Int[Array, "readings"], values: Float[Array, "readings"]) -> Field:
    return model.fit(stations, values)


def station_averages(history: History, year: int) -> tuple[Int[np.ndarray, "stations"], Float[np.ndarray, "stations"]]:
    """Stations with readings, and log(1 + the year's average concentration) at each."""
    stations, values = history.of_year(year)
    unique, which = np.unique(stations, return_inverse=True)
    total = np.bincount(which, np.expm1(values.astype(float)))
    return unique, np.log1p(total / np.bincount(which)).astype(np.float32)


def _counts(problem: Hotspot, year: int) -> tuple[int, int, int]:
    """Readings, stations and cells."""
    history = problem.fields.history
    stations = history.of_year(year)[0]
    different = np.unique(stations)
    cells = problem.grid.cells(np.asarray(history.places, float)[different])
    return len(stations), len(different), len(np.unique(cells))


def _constant(problem: Hotspot, highest: list[Array]) -> int | None:
    """The cell that is most often among the highest of these years' fields."""
    return int(problem.hypotheses.best_constant(jnp.concatenate(highest))) if highest else None


def _share(highest: Int[Array, "fields k"], cell: int) -> float:
    """Fields in which a cell is among the highest."""
    return float(np.mean(np.any(np.asarray(highest) == cell, axis=1)))
