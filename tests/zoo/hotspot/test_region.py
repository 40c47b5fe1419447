"""The ground: degrees, places in cells, and cells agree with each other; what lies outside is outside."""

import numpy as np
import pytest

from icmape.errors import UserError
from icmape.zoo.hotspot.region import EDGE, OUTSIDE, Grid, make_grid

# Half a degree of latitude and of longitude to a cell:
#   39.0  0 1 2 3
#         4 5 6 7
#   38.0  from -78.0 to -76.0
HAND = Grid(38.0, 39.0, -78.0, -76.0, 2, 4)
ODD = Grid(37.915, 39.719, -79.179, -75.571, 7, 11)


def cell(grid: Grid, latitude: float, longitude: float) -> int:
    return int(grid.cells(grid.places(np.array([latitude], float), np.array([longitude], float)))[0])


@pytest.mark.parametrize(
    ("latitude", "longitude", "expected"),
    [
        (39.0, -78.0, 0),  # the corners of the region belong to its corner cells
        (39.0, -76.0, 3),
        (38.0, -78.0, 4),
        (38.0, -76.0, 7),
        (38.75, -77.75, 0),  # middles
        (38.25, -77.25, 5),
        (38.5, -77.25, 5),  # where two cells meet it is the southern one,
        (38.75, -77.5, 1),  # and the eastern one
    ],
)
def test_hand_worked_cells(latitude, longitude, expected):
    assert cell(HAND, latitude, longitude) == expected


def test_places_are_counted_in_cells_from_the_north_west():
    places = HAND.places(np.array([39.0, 38.75, 38.0]), np.array([-78.0, -76.25, -77.0]))
    np.testing.assert_allclose(places, [[0, 0], [0.5, 3.5], [2, 2]])


def test_a_hand_worked_middle():
    np.testing.assert_allclose(HAND.middles(np.array([6])), [[1.5, 2.5]])
    np.testing.assert_allclose(HAND.coordinates(np.array([6])), [[38.25, -76.75]])
    assert HAND.size == 8


def test_cells_middles_and_coordinates_agree():
    cells = np.arange(ODD.size)
    np.testing.assert_array_equal(ODD.cells(ODD.middles(cells)), cells)
    latitude, longitude = ODD.coordinates(cells).T
    np.testing.assert_allclose(ODD.places(latitude, longitude), ODD.middles(cells), atol=1e-9)
    assert len({*zip(latitude, longitude, strict=True)}) == ODD.size
    assert latitude[0] > latitude[-1]  # north first
    assert longitude[0] < longitude[-1]


def test_cells_are_those_between_evenly_spaced_borders():
    """Against a search in the borders themselves, for points inside the region."""
    chance = np.random.default_rng(0)
    latitude, longitude = chance.uniform(37.915, 39.719, 500), chance.uniform(-79.179, -75.571, 500)
    south_to_north = np.searchsorted(np.linspace(37.915, 39.719, 8), latitude) - 1
    west_to_east = np.searchsorted(np.linspace(-79.179, -75.571, 12), longitude) - 1
    np.testing.assert_array_equal(ODD.cells(ODD.places(latitude, longitude)), (6 - south_to_north) * 11 + west_to_east)


@pytest.mark.parametrize(("down", "across"), [(-1, 0), (1, 0), (0, -1), (0, 1), (1, 1)])
def test_a_little_beyond_the_edge_still_belongs_to_it(down, across):
    """Bounds are rounded degrees; a twentieth of a cell is forgiven on every side, and no more."""
    size, toward = np.array([2.0, 4.0]), np.array([down, across])
    corner = np.where(toward > 0, size, np.where(toward < 0, 0.0, 0.5))
    inside, beyond = corner + 0.99 * EDGE * toward, corner + 1.01 * EDGE * toward
    row, column = np.clip(np.floor(corner), 0, size - 1).astype(int)
    assert HAND.cells(np.stack([inside, beyond])).tolist() == [row * 4 + column, OUTSIDE]


@pytest.mark.parametrize(("latitude", "longitude"), [(45, -77), (30, -77), (38.5, -79), (38.5, -70), (-38.5, 77)])
def test_far_away_is_outside(latitude, longitude):
    assert cell(HAND, latitude, longitude) == OUTSIDE


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (((39.0, 38.0), (-78.0, -76.0), 2, 4), r"latitudes must be .* the smaller first.* given \[39.0, 38.0\]"),
        (((38.0, 38.0), (-78.0, -76.0), 2, 4), "latitudes must be two numbers"),
        (((38.0, 91.0), (-78.0, -76.0), 2, 4), "within ±90"),
        (((38.0, 39.0), (-76.0, -78.0), 2, 4), "longitudes must be two numbers"),
        (((38.0, 39.0), (-181.0, -76.0), 2, 4), "within ±180"),
        (((38.0, float("nan")), (-78.0, -76.0), 2, 4), "latitudes must be two numbers"),
        (((38.0, 38.5, 39.0), (-78.0, -76.0), 2, 4), "latitudes must be two numbers"),
        (((38.0,), (-78.0, -76.0), 2, 4), "latitudes must be two numbers"),
        (((38.0, 39.0), (-78.0, -76.0), 0, 4), "at least one row and one column; given 0 and 4"),
        (((38.0, 39.0), (-78.0, -76.0), 2, -1), "at least one row and one column"),
    ],
)
def test_what_bounds_no_region_is_refused(given, said):
    with pytest.raises(UserError, match=said):
        make_grid(*given)


def test_the_whole_earth_is_a_region():
    assert make_grid([-90.0, 90.0], [-180.0, 180.0], 1, 1).size == 1
