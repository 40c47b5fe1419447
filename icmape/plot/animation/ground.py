"""The map of an animation: land and towns where there are some, places, and what the posterior says of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icmape.plot.charts import svg
from icmape.plot.drawing import Ground
from icmape.plot.earth import around, extent
from icmape_agent.display import Places
from icmape_agent.geography import region
from icmape_agent.look import DARK, LIGHT

LEVELS = 10  # of the glow
FAINTEST = 0.05  # of the most likely place's chance, below which a place does not glow
TOWNS = 12
RIM = 0.03  # of the grid's width and height, around what must be seen


class Frame(NamedTuple):
    """Where the grid is, in pixels, and the map around it."""

    left: float
    top: float
    width: float
    height: float
    ground: Ground
    view: tuple[float, float, float, float]  # of the map: left, top, width and height

    @classmethod
    def fitted(cls, ground: Ground, actions: object, left: float, top: float, width: float, height: float) -> Frame:
        """As large as these allow. A map of the earth fills them and shows the whole land that the places are on."""
        ratio = ground.ratio * ground.rows / ground.columns
        if not isinstance(actions, Places):
            across = min(width, height / ratio)
            view = (left + (width - across) / 2, top, across, across * ratio)
            return cls(*view, ground, view)
        west, north, east, south = _beyond(actions)
        wide, high = 1 + west + east, ratio * (1 + north + south)
        across = min(width / wide, height / high)
        x, y = (width - across * wide) / 2 + west * across, (height - across * high) / 2 + north * ratio * across
        return cls(left + x, top + y, across, across * ratio, ground, (left, top, width, height))

    @property
    def cell_size(self) -> tuple[float, float]:
        """Width and height of a cell."""
        return self.width / self.ground.columns, self.height / self.ground.rows

    def corner(self, cell: int) -> tuple[float, float]:
        """The upper left corner of a cell."""
        row, column = divmod(cell, self.ground.columns)
        wide, high = self.cell_size
        return self.left + column * wide, self.top + row * high

    def middle(self, row: int, column: int) -> tuple[float, float]:
        """The middle of a cell."""
        wide, high = self.cell_size
        return self.left + (column + 0.5) * wide, self.top + (row + 0.5) * high

    def middle_of(self, cell: int) -> tuple[float, float]:
        """The middle of a cell by its number."""
        return self.middle(*divmod(cell, self.ground.columns))


def _beyond(places: Places) -> tuple[float, float, float, float]:
    """What must be seen in the west, north, east and south of the grid, in its widths and heights."""
    south, north, west, east = places.bounds
    shown = around(places)
    least, most, left, right = extent(places, shown, shown.home(places.coordinates))
    wide, high = east - west, north - south
    beyond = ((west - left) / wide, (most - north) / high, (right - east) / wide, (south - least) / high)
    west, north, east, south = (share + RIM for share in beyond)
    return west, north, east, south


def background(frame: Frame, actions: object) -> str:
    """Land, towns and the places that can be the answer, clipped to the map."""
    box = {**dict(zip(("x", "y", "width", "height"), frame.view, strict=True)), "rx": 6.0}
    clip = svg.element("clipPath", svg.element("rect", **box), id="map")
    parts = [svg.element("rect", **box, class_="water" if isinstance(actions, Places) else "home")]
    if isinstance(actions, Places):
        parts += _country(frame, actions)
    if len(frame.ground.cells) < frame.ground.rows * frame.ground.columns:
        parts += [_spot(frame, cell) for cell in frame.ground.cells]
    return clip + svg.element("g", *parts, clip_path="url(#map)")


def _country(frame: Frame, places: Places) -> list[str]:
    south, north, west, east = places.bounds
    left, top, width, height = frame.view
    wide, high = (east - west) / frame.width, (north - south) / frame.height  # degrees a pixel
    begins, ends = west - (frame.left - left) * wide, north + (frame.top - top) * high
    shown = region(ends - height * high, ends, begins, begins + width * wide, towns=TOWNS)
    home = shown.home(places.coordinates)

    def place(longitude: float, latitude: float) -> tuple[float, float]:
        across, down = (longitude - west) / (east - west), (north - latitude) / (north - south)
        return frame.left + across * frame.width, frame.top + down * frame.height

    parts = []
    for land in sorted(shown.lands, key=lambda land: land.name == home):
        shape = "".join(svg.path((place(*point) for point in ring), closed=True) for ring in land.rings)
        parts.append(svg.element("path", d=shape, class_="home" if land.name == home else "land"))
    for town in shown.towns:
        x, y = place(town.longitude, town.latitude)
        if x < left + width - svg.width_of(town.name, 13.0) - 12:
            parts.append(svg.element("circle", cx=x, cy=y, r=2.0, class_="town"))
            parts.append(svg.words(town.name, x + 5, y + 4, "town"))
    return parts


def _spot(frame: Frame, cell: int) -> str:
    x, y = frame.middle_of(cell)
    return svg.element("circle", cx=x, cy=y, r=1.3, class_="spot")


def glow(frame: Frame, chances: np.ndarray) -> str:
    """The cells that may be the answer, the brighter the more likely: by chance, and beside the most likely one."""
    marks = []
    values = chances.ravel().tolist()
    for cell, chance in zip(frame.ground.cells, values, strict=True):
        beside = chance / max(*values, 1e-9)
        if beside >= FAINTEST:
            x, y = frame.corner(cell)
            level = min(LEVELS - 1, int((chance + beside) / 2 * LEVELS))
            marks.append(f'<rect x="{x:.1f}" y="{y:.1f}" class="g{level}"/>')
    return svg.element("g", *marks, class_="glow")


def glow_css(frame: Frame) -> str:
    """Size and colours of glowing cells, in light and in dark."""
    wide, high = frame.cell_size

    def rules(colours: dict[str, str]) -> str:
        parts = ((level, level / (LEVELS - 1)) for level in range(LEVELS))
        look = "fill:{colour};fill-opacity:{opacity:.2f}"
        return "".join(
            f".g{level}{{{look.format(colour=blend(colours, part), opacity=0.35 + 0.6 * part)}}}"
            for level, part in parts
        )

    return (
        f".glow rect{{width:{wide:.1f}px;height:{high:.1f}px;rx:3px}}.glow{{filter:url(#blur)}}"
        f"{rules(dict(LIGHT))}@media screen and (prefers-color-scheme:dark){{{rules(dict(DARK))}}}"
    )


def blend(colours: dict[str, str], part: float) -> str:
    """The colour of the glow between its lowest and its highest."""
    first = min(int(part * 2), 1)
    low, high = colours[f"glow-{first}"], colours[f"glow-{first + 1}"]
    weight = part * 2 - first
    channels = [(int(low[i : i + 2], 16), int(high[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + weight * (b - a)):02x}" for a, b in channels)
