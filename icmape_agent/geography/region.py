"""The part of North America that a map shows: land by state, and its towns. Where there is no land, there is water."""

import gzip
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any, NamedTuple

Point = tuple[float, float]  # longitude, latitude
Ring = list[Point]

MOST_TOWNS = 60  # that a page may show
WINDS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
DEGREE_KM = 111.2
AT = 3  # kilometres from a town at which a place is said to be there
MARGIN = 0.15  # of each side: land is cut off this far outside the map, so that no cut is seen


class Land(NamedTuple):
    """A state or country: closed rings, in which a point is land if an odd number of them is around it."""

    name: str
    rings: list[Ring]

    def contains(self, longitude: float, latitude: float) -> bool:
        """Whether a point is on this land."""
        return sum(_around(ring, longitude, latitude) for ring in self.rings) % 2 == 1


class Town(NamedTuple):
    """A town."""

    name: str
    longitude: float
    latitude: float


class Region(NamedTuple):
    """What a map between these degrees shows. `lands` lie a little beyond its edges: the map clips them."""

    south: float
    north: float
    west: float
    east: float
    lands: list[Land]
    towns: list[Town]

    def home(self, places: Iterable[Sequence[float]]) -> str:
        """The land on which most of these places (latitude, longitude) are; empty if none is on land."""
        counts = dict.fromkeys((land.name for land in self.lands), 0)
        for latitude, longitude in places:
            for land in self.lands:
                counts[land.name] += land.contains(longitude, latitude)
        best = max(counts, key=counts.__getitem__, default="")
        return best if counts.get(best) else ""

    def near(self, latitude: float, longitude: float) -> str:
        """A place in words, as on the crews' pages: "7 km NE of Hagerstown"; empty where no town is shown."""
        if not self.towns:
            return ""
        narrow = math.cos(math.radians(latitude))
        away = lambda town: math.hypot(town.latitude - latitude, (town.longitude - longitude) * narrow)  # noqa: E731
        best = min(self.towns, key=away)
        turn = math.atan2((longitude - best.longitude) * narrow, latitude - best.latitude)
        wind, far = WINDS[round(4 * turn / math.pi) % 8], DEGREE_KM * away(best)
        return f"at {best.name}" if far < AT else f"{far:.0f} km {wind} of {best.name}"

    def to_dict(self) -> dict[str, Any]:
        """For a page: degrees with three decimals; every ring is one list of longitudes and latitudes in turn."""
        numbers = lambda ring: [round(value, 3) for point in ring for value in point]  # noqa: E731
        lands = [{"name": land.name, "rings": [numbers(ring) for ring in land.rings]} for land in self.lands]
        bounds = {name: getattr(self, name) for name in ("south", "north", "west", "east")}
        return {**bounds, "lands": lands, "towns": [town._asdict() for town in self.towns]}


def region(south: float, north: float, west: float, east: float, *, towns: int = 12) -> Region:
    """The map between these degrees, with its best known towns, not too close to each other."""
    high, wide = (north - south) * MARGIN, (east - west) * MARGIN
    box = (west - wide, south - high, east + wide, north + high)
    lands = []
    for name, rings in _lands():
        cut = [part for ring in rings if (part := _cut(ring, box))]
        if cut:
            lands.append(Land(name, cut))
    shown = _spread((town for town in _towns() if _inside(town, south, north, west, east)), (east - west) / 9, towns)
    return Region(south, north, west, east, lands, shown)


def map_of(actions: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a page shows around actions that are places on the earth (`icmape_agent.display`); None for others."""
    if actions["kind"] != "places":
        return None
    shown = region(*actions["bounds"], towns=MOST_TOWNS)
    return {**shown.to_dict(), "home": shown.home(actions["coordinates"])}


def by_towns(actions: Mapping[str, Any]) -> list[str]:
    """Actions that are places on the earth by the nearest town on such a page; empty for others, and without towns."""
    shown = region(*actions["bounds"], towns=MOST_TOWNS) if actions["kind"] == "places" else None
    return [shown.near(*place) for place in actions["coordinates"]] if shown and shown.towns else []


def answers_by_towns(display: Mapping[str, Any]) -> list[str]:
    """Answers by the nearest town, if they are at the places of actions; empty for others."""
    return by_towns(display["actions"]) if display["answers"] == "actions" else []


def _inside(town: Town, south: float, north: float, west: float, east: float) -> bool:
    return south <= town.latitude <= north and west <= town.longitude <= east


def _spread(found: Iterable[Town], apart: float, most: int) -> list[Town]:
    """The first towns, without those whose names would touch one that is shown."""
    shown: list[Town] = []
    for town in found:
        near = (
            abs(town.longitude - other.longitude) < apart and abs(town.latitude - other.latitude) < apart / 4
            for other in shown
        )
        if len(shown) < most and not any(near):
            shown.append(town)
    return shown


@cache
def _content() -> dict[str, Any]:
    packed = files("icmape_agent.geography").joinpath("north_america.json.gz").read_bytes()
    content: dict[str, Any] = json.loads(gzip.decompress(packed))
    return content


@cache
def _lands() -> list[tuple[str, list[Ring]]]:
    """Neighbours first: states are drawn over them."""
    content = _content()
    named = [*content["neighbours"].items(), *content["states"].items()]
    return [(name, [_ring(numbers, content["units"]) for numbers in rings]) for name, rings in named]


@cache
def _towns() -> list[Town]:
    """Best known first."""
    content = _content()
    return [Town(name, x / content["units"], y / content["units"]) for name, x, y in content["towns"]]


def _ring(numbers: list[int], units: int) -> Ring:
    across, up = accumulate(numbers[::2]), accumulate(numbers[1::2])
    return [(x / units, y / units) for x, y in zip(across, up, strict=True)]


def _around(ring: Ring, x: float, y: float) -> bool:
    """Whether a ring goes around a point: a ray to the east crosses it an odd number of times."""
    crossings = 0
    for (x0, y0), (x1, y1) in zip(ring, ring[1:] + ring[:1], strict=True):
        if (y0 > y) != (y1 > y) and x < x0 + (y - y0) / (y1 - y0) * (x1 - x0):
            crossings += 1
    return crossings % 2 == 1


def _cut(ring: Ring, box: tuple[float, float, float, float]) -> Ring:
    """The part of a ring in a box (Sutherland and Hodgman)."""
    for axis, limit, sign in ((0, box[0], 1), (1, box[1], 1), (0, box[2], -1), (1, box[3], -1)):
        ring = list(_half(ring, axis, limit, sign))
        if not ring:
            return []
    return ring


def _half(ring: Ring, axis: int, limit: float, sign: int) -> Iterator[Point]:
    """The part of a ring on one side of a line."""
    for last, point in zip(ring[-1:] + ring[:-1], ring, strict=True):
        was, is_ = sign * (last[axis] - limit) >= 0, sign * (point[axis] - limit) >= 0
        if was != is_:
            part = (limit - last[axis]) / (point[axis] - last[axis])
            crossing = [last[other] + part * (point[other] - last[other]) for other in (0, 1)]
            crossing[axis] = limit
            yield crossing[0], crossing[1]
        if is_:
            yield point
