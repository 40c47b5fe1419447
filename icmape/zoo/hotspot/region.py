"""The map: a region in degrees, divided into cells."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from icmape.errors import UserError
from icmape.memory import check_fits
from icmape_agent.display import Places

EDGE = 0.05  # cells beyond the edge that still belong to it: bounds are given in rounded degrees
OUTSIDE = -1


class Grid(NamedTuple):
    """A region divided into rows (from north to south) and columns (from west to east), numbered row by row."""

    south: float
    north: float
    west: float
    east: float
    rows: int
    columns: int

    @property
    def size(self) -> int:
        """How many cells."""
        return self.rows * self.columns

    def places(self, latitude: Float[np.ndarray, "n"], longitude: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n 2"]:
        """Where coordinates are, in cells from the north-west corner."""
        down = (self.north - np.asarray(latitude, float)) / (self.north - self.south) * self.rows
        across = (np.asarray(longitude, float) - self.west) / (self.east - self.west) * self.columns
        return np.stack([down, across], axis=-1)

    def cells(self, places: Float[np.ndarray, "n 2"]) -> Int[np.ndarray, "n"]:
        """The cells of places; those outside the region are `OUTSIDE`."""
        size = np.array([self.rows, self.columns])
        inside = np.all((places >= -EDGE) & (places <= size + EDGE), axis=-1)
        row, column = np.clip(np.floor(places), 0, size - 1).astype(int).T
        return np.where(inside, row * self.columns + column, OUTSIDE)

    def middles(self, cells: Int[np.ndarray, "n"]) -> Float[np.ndarray, "n 2"]:
        """The middle of each cell, in cells from the north-west corner."""
        return np.stack(np.divmod(np.asarray(cells), self.columns), axis=-1) + 0.5

    def coordinates(self, cells: Int[np.ndarray, "n"]) -> Float[np.ndarray, "n 2"]:
        """Latitude and longitude of the middle of each cell."""
        down, across = self.middles(cells).T
        latitude = self.north - down / self.rows * (self.north - self.south)
        longitude = self.west + across / self.columns * (self.east - self.west)
        return np.stack([latitude, longitude], axis=-1)


def make_grid(latitudes: Sequence[float], longitudes: Sequence[float], rows: int, columns: int) -> Grid:
    """A grid, if these are the bounds of a region."""
    for name, bounds, limit in (("latitudes", latitudes, 90.0), ("longitudes", longitudes, 180.0)):
        if len(bounds) != 2 or not -limit <= bounds[0] < bounds[1] <= limit:
            raise UserError(
                f"{name} must be two numbers in degrees, the smaller first, within ±{limit:g}; given {list(bounds)}"
            )
    if rows < 1 or columns < 1:
        raise UserError(f"a grid needs at least one row and one column; given {rows} and {columns}")
    check_fits(f"a grid of {rows:,} × {columns:,} cells", 64.0 * rows * columns, "choose fewer rows and columns")
    return Grid(float(latitudes[0]), float(latitudes[1]), float(longitudes[0]), float(longitudes[1]), rows, columns)


def map_of(grid: Grid, coordinates: Float[np.ndarray, "cells 2"]) -> Places:
    """The cells as places on a map, for people."""
    bounds = grid.south, grid.north, grid.west, grid.east
    area = (grid.north - grid.south) / grid.rows, (grid.east - grid.west) / grid.columns
    return Places(coordinates.tolist(), bounds, area)


def side(degree: float, letters: str, sign: str = "", digits: int | None = None) -> str:
    """A degree with a letter instead of its sign: 76.5W for -76.5."""
    number = f"{abs(degree):g}" if digits is None else f"{abs(degree):.{digits}f}"
    return f"{number}{sign}{letters[0] if degree >= 0 else letters[1]}"


def place_name(place: Sequence[float] | np.ndarray) -> str:
    """39.31N 76.52W."""
    return f"{side(float(place[0]), 'NS', digits=2)} {side(float(place[1]), 'EW', digits=2)}"
