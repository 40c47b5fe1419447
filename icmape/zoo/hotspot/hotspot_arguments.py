"""Checks of the arguments of a hotspot problem, and defaults computed from data."""

from collections.abc import Mapping, Sequence

import numpy as np

from icmape.errors import UserError
from icmape.memory import check_fits
from icmape.zoo.hotspot.data.readings import HOW_TO_GET
from icmape.zoo.hotspot.history import History, make_history
from icmape.zoo.hotspot.region import Grid


def check_sources(
    data: Sequence[str] | str | None,
    synthetic: int | None,
    valid: Sequence[int] | None,
    centre: float | None,
    spread: float | None,
) -> tuple[str, ...] | None:
    """Paths of the data. Without data and synthetic seed, the arguments needed for acting must be given."""
    paths = (data,) if isinstance(data, str) else tuple(map(str, data)) if data is not None else None
    if paths is not None and synthetic is not None:
        raise UserError("give measurements (problem.data) or the seed of made-up ones (problem.synthetic), not both")
    if paths is not None and not paths:
        raise UserError(f"problem.data names no files: {HOW_TO_GET}")
    if paths is None and synthetic is None and (valid is None or centre is None or spread is None):
        raise UserError(f"this problem's worlds come from measurements, and none were given: {HOW_TO_GET}")
    return paths


def check_numbers(counts: Mapping[str, int], sizes: Mapping[str, float]) -> None:
    """Counts are at least 1, sizes above 0."""
    for name, count in counts.items():
        if count < 1:
            raise UserError(f"{name} must be at least 1; given {count}")
    check_fits(f"a field fitted to {counts['fit']:,} readings", 8.0 * counts["fit"] ** 2, "choose a smaller fit")
    for name, size in sizes.items():
        if not size > 0:
            raise UserError(f"{name} must be above 0; given {size:g}")


def read_history(
    data: tuple[str, ...] | None, synthetic: int | None, rules: tuple[tuple[str, ...], bool], grid: Grid
) -> History | None:
    """The measurements in the region. `rules` are the characteristics, and whether station-days are averaged."""
    if synthetic is not None:
        from icmape.zoo.hotspot.synthetic import synthetic_readings

        return make_history(synthetic_readings(grid, synthetic), grid)
    if data is None:
        return None
    from icmape.zoo.hotspot.data.source import read_data

    return make_history(read_data(data, *rules), grid)


def ground(
    history: History, grid: Grid, years: Sequence[int], support: int, valid: Sequence[int] | None
) -> tuple[int, ...]:
    """The valid cells: those with enough readings in these years, unless given."""
    if valid is not None:
        cells = tuple(sorted({int(cell) for cell in valid}))
        if not cells or cells[0] < 0 or cells[-1] >= grid.size:
            raise UserError(f"valid must name cells of the grid, 0..{grid.size - 1}; given {list(valid)[:8]}")
        return cells
    station_cells = grid.cells(np.asarray(history.places, float))
    counts = np.zeros(grid.size, int)
    for year in years:
        if year in history.years:
            np.add.at(counts, station_cells[history.of_year(year)[0]], 1)
    supported = np.flatnonzero(counts >= support)
    if len(supported) == 0:
        raise UserError(
            f"no cell of the region has {support} reading{'s' * (support > 1)} in the training years "
            f"({', '.join(map(str, years))}): years with data are {', '.join(map(str, history.years))}. Set "
            "problem.training_years to some of them, or lower problem.support"
        )
    return tuple(map(int, supported))


def scale(history: History, years: Sequence[int], centre: float | None, spread: float | None) -> tuple[float, float]:
    """Mean and standard deviation of log(1 + concentration) in these years, unless given."""
    if spread is not None and not spread > 0:
        raise UserError(f"spread must be above 0; given {spread:g}")
    if centre is not None and spread is not None:
        return centre, spread
    by_year = [history.of_year(year)[1] for year in years if year in history.years]
    if not by_year:
        raise UserError(
            f"none of the training_years has readings; years with data: {', '.join(map(str, history.years))}"
        )
    values = np.concatenate(by_year)
    if np.ptp(values) == 0:
        raise UserError(f"all {len(values):,} readings of the training years have the same value: nothing to find")
    return float(values.mean()) if centre is None else centre, float(values.std()) if spread is None else spread
