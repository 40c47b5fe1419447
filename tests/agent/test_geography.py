"""Maps of a region: what is land, which state, which towns."""

import json

import pytest

from icmape_agent.geography import Region, region

MARYLAND = {"south": 37.915, "north": 39.719, "west": -79.179, "east": -75.571}


@pytest.fixture(scope="module")
def map_() -> Region:
    return region(**MARYLAND)


@pytest.mark.parametrize(
    ("latitude", "longitude", "names"),
    [
        (39.41, -77.41, ["Maryland"]),  # Frederick
        (38.37, -75.63, ["Maryland"]),  # Salisbury, east of the bay
        (38.90, -77.02, ["District of Columbia"]),
        (38.03, -78.48, ["Virginia"]),  # Charlottesville
        (39.45, -75.70, ["Delaware"]),
        (38.60, -76.42, []),  # in the Chesapeake Bay
    ],
)
def test_a_place_is_on_the_land_that_it_is_on(map_: Region, latitude: float, longitude: float, names: list[str]):
    assert [land.name for land in map_.lands if land.contains(longitude, latitude)] == names


def test_home_is_the_land_of_most_places(map_: Region):
    assert map_.home([(39.41, -77.41), (39.3, -76.7), (38.03, -78.48)]) == "Maryland"
    assert map_.home([(38.60, -76.42)]) == ""


def test_a_place_is_named_by_its_nearest_town(map_: Region):
    """0.1 degrees of latitude are 11 km; a degree of longitude is 0.78 of one of latitude here."""
    hagerstown = next(town for town in map_.towns if town.name == "Hagerstown")
    latitude, longitude = hagerstown.latitude, hagerstown.longitude
    assert map_.near(latitude + 0.01, longitude) == "at Hagerstown"
    assert map_.near(latitude + 0.1, longitude) == "11 km N of Hagerstown"
    assert map_.near(latitude, longitude - 0.2) == "17 km W of Hagerstown"
    assert map_.near(latitude + 0.05, longitude + 0.064) == "8 km NE of Hagerstown"
    assert region(46.0, 47.0, 7.0, 9.0).near(46.5, 8.0) == ""


def test_towns_are_within_the_map_best_known_first_and_apart(map_: Region):
    names = [town.name for town in map_.towns]
    assert {"Baltimore", "Washington", "Annapolis", "Frederick", "Hagerstown", "Salisbury"} <= set(names)
    assert len(names) == len(set(names)) == 12
    assert names[:3] == [town.name for town in region(**MARYLAND, towns=3).towns]
    for town in map_.towns:
        assert MARYLAND["south"] <= town.latitude <= MARYLAND["north"]
        assert MARYLAND["west"] <= town.longitude <= MARYLAND["east"]


def test_land_is_cut_outside_the_map_so_that_no_cut_is_seen(map_: Region):
    points = [point for land in map_.lands for ring in land.rings for point in ring]
    assert min(x for x, _ in points) < MARYLAND["west"]
    assert max(y for _, y in points) > MARYLAND["north"]
    assert all(MARYLAND["west"] - 1 < x < MARYLAND["east"] + 1 for x, _ in points)


def test_far_away_there_is_neither_land_nor_town():
    assert region(46.0, 47.0, 7.0, 9.0)[4:] == ([], [])


def test_a_page_gets_a_few_kilobytes(map_: Region):
    text = json.dumps(map_.to_dict(), allow_nan=False)
    assert len(text) < 15_000
    assert json.loads(text)["lands"][0].keys() == {"name", "rings"}
