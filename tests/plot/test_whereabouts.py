"""The map of a report shows where each agent goes, on ground that people know."""

import pytest

from icmape.plot.episode_replay import scene
from icmape.plot.whereabouts import Whereabouts, visits_of
from icmape_agent.display import Places
from tests.plot.analyses import analysis
from tests.plot.charts.drawn import parsed, texts
from tests.zoo.hotspot.test_hotspot_drawing import episode as hotspot_episode

MARYLAND = Places([(39.6, -77.7), (38.4, -75.6)], (37.915, 39.719, -79.179, -75.571), (0.09, 0.18))


def drawn(visits: list[dict[int, float]]) -> Whereabouts:
    return Whereabouts("Where", "few episodes", places=MARYLAND, visits=visits, agent="crew")


def test_shares_of_visits_are_without_the_stop() -> None:
    visits = visits_of(analysis())
    assert [set(row) for row in visits] == [{0}, {0, 1}]
    assert [sum(row.values()) for row in visits] == [pytest.approx(1.0)] * 2


def test_discs_and_numbers_stand_at_the_places() -> None:
    root = parsed(drawn([{0: 1.0}, {1: 1.0}]))
    circles = [
        one for one in root.iter() if one.tag.endswith("circle") and one.get("fill", "").startswith("var(--agent")
    ]
    across = sorted({round(float(one.get("cx", 0)) / 10) for one in circles if float(one.get("r", 0)) > 10})
    assert len(across) == 2
    assert across[0] < across[1], "the second place is in the east"
    assert {"1", "2", "crew 1", "crew 2", "Baltimore"} <= set(texts(root))


def test_rare_places_are_left_out_and_the_map_can_be_heard() -> None:
    one = parsed(drawn([{0: 0.99, 1: 0.01}]))
    discs = [c for c in one.iter() if c.tag.endswith("circle") and c.get("fill-opacity")]
    assert len(discs) == 1
    assert drawn([{0: 0.99, 1: 0.01}]).described() == "crew 1 most at 39.60, -77.70 (99%)"


def test_a_map_of_the_earth_has_its_state_and_its_towns() -> None:
    ground = scene(hotspot_episode(), "one")["ground"]
    assert ground["home"] == "Maryland"
    assert {"Maryland", "Virginia", "Pennsylvania"} <= {land["name"] for land in ground["region"]["lands"]}
    assert "Baltimore" in {town["name"] for town in ground["region"]["towns"]}
    south, north, west, east = ground["bounds"]
    assert ground["region"]["south"] < south < north < ground["region"]["north"]
    assert ground["region"]["west"] < west < east < ground["region"]["east"]


def test_the_whole_state_is_seen_and_not_only_its_cells() -> None:
    """Maryland lies between 79.49 and 75.05 degrees west; the cells end at 79.18 and 75.57."""
    ground = scene(hotspot_episode(), "one")["ground"]
    south, north, west, east = drawn([{0: 1.0}])._box()
    for low, high in (ground["extent"][2:], (west, east)):
        assert low < -79.48
        assert high > -75.06
    for low, high in (ground["extent"][:2], (south, north)):
        assert low <= MARYLAND.bounds[0]
        assert high >= MARYLAND.bounds[1]
