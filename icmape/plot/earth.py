"""What maps show around places on the earth, and these places in words."""

from collections.abc import Mapping

from icmape_agent.display import Places
from icmape_agent.geography import Region, region

AROUND = 0.25  # of a map's height and width: what is shown around it
MOST_TOWNS = 24


def around(places: Places) -> Region:
    """What is around the places."""
    south, north, west, east = places.bounds
    high, wide = AROUND * (north - south), AROUND * (east - west)
    return region(south - high, north + high, west - wide, east + wide, towns=MOST_TOWNS)


def extent(places: Places, shown: Region, home: str) -> list[float]:
    """South, north, west and east of the places and of the land that they are on, as far as it is shown."""
    outline = [point for land in shown.lands if land.name == home for ring in land.rings for point in ring]
    across, up = [x for x, _ in outline], [y for _, y in outline]
    south, north, west, east = places.bounds
    return [
        max(min([south, *up]), shown.south),
        min(max([north, *up]), shown.north),
        max(min([west, *across]), shown.west),
        min(max([east, *across]), shown.east),
    ]


def by_town(names: Mapping[int, str], places: Places) -> dict[int, str]:
    """Names of actions, with places by the nearest town."""
    return {**names, **{action: words for action, words in enumerate(near_names(places)) if words}}


def near_names(places: Places) -> list[str]:
    """Each place by the nearest town; empty where there is none."""
    shown = around(places)
    return [shown.near(float(latitude), float(longitude)) for latitude, longitude in places.coordinates]
