"""A map of where each agent goes, over all episodes, for actions that are places on the earth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from icmape.evaluation.analysis import Analysis
from icmape.plot.charts import Chart, Key, agent_colour, svg
from icmape.plot.charts.chart import legend
from icmape.plot.charts.svg import Number
from icmape.plot.earth import around, extent
from icmape_agent.display import Places
from icmape_agent.geography import Region, region

_Place = Callable[[Number, Number], tuple[Number, Number]]  # longitude and latitude to pixels
AROUND = 0.06  # of the map's sides: what is shown around it
LARGEST = 15.0  # pixels: radius of a disc for all visits of an agent, on a map of 720 pixels
LEAST = 0.02  # share of an agent's visits that is drawn
HEAD = 9.0  # radius of a number
LETTER = 6.4  # pixels of a town's name


@dataclass(frozen=True)
class Whereabouts(Chart):
    """Discs as large as the shares of an agent's visits, its number where it goes most."""

    places: Places = field(kw_only=True)
    visits: Sequence[Mapping[int, Number]] = field(kw_only=True)  # of each agent: shares by action
    agent: str = "agent"
    kind: ClassVar[str] = "Map"

    def draw(self, width: Number) -> tuple[Number, str]:
        """Height and drawing at a width."""
        south, north, west, east = self._box()
        middle = math.cos(math.radians((south + north) / 2))
        height = width * (north - south) / ((east - west) * middle)

        def place(longitude: Number, latitude: Number) -> tuple[Number, Number]:
            return (longitude - west) / (east - west) * width, (north - latitude) / (north - south) * height

        shown = region(south, north, west, east, towns=14)
        ground = svg.element("rect", width=width, height=height, fill="var(--water)")
        parts = [ground, *self._lands(shown, place), *_towns(shown, place, width, height), *self._discs(place, width)]
        keys = [Key(f"{self.agent} {n + 1}", agent_colour(n), shape="dot") for n in range(len(self.visits))]
        clipped = svg.element(
            "svg", *parts, width=width, height=height, viewBox=f"0 0 {svg.short(width)} {svg.short(height)}"
        )
        return svg.stacked([legend(keys, width), (height, clipped)])

    def _box(self) -> tuple[Number, Number, Number, Number]:
        shown = around(self.places)
        south, north, west, east = extent(self.places, shown, shown.home(self.places.coordinates))
        high, wide = AROUND * (north - south), AROUND * (east - west)
        return south - high, north + high, west - wide, east + wide

    def _lands(self, shown: Region, place: _Place) -> Iterator[str]:
        """The land that the question is about over the others."""
        home = shown.home(self.places.coordinates)
        for land in sorted(shown.lands, key=lambda one: one.name == home):
            path = "".join(svg.path((place(*point) for point in ring), closed=True) for ring in land.rings)
            own = land.name == home
            look = {
                "fill": "var(--home)" if own else "var(--land)",
                "stroke": "var(--border)" if own else "var(--line)",
            }
            yield svg.element("path", svg.title(land.name), d=path, fill_rule="evenodd", **look)

    def _discs(self, place: _Place, width: Number) -> Iterator[str]:
        """Large ones first, so that small ones are seen; then the numbers."""
        scale = max(width / 720, 0.6)
        every = [(share, agent, action) for agent, row in enumerate(self.visits) for action, share in row.items()]
        for share, agent, action in sorted(every, reverse=True):
            if share >= LEAST:
                latitude, longitude = self.places.coordinates[action]
                x, y = place(longitude, latitude)
                said = svg.title(f"{self.agent} {agent + 1}: {share:.0%} of its visits")
                look = {"fill": agent_colour(agent), "fill_opacity": 0.85, "stroke": "var(--on-agent)"}
                yield svg.element("circle", said, cx=x, cy=y, r=LARGEST * math.sqrt(share) * scale + 2, **look)
        yield from self._numbers(place)

    def _numbers(self, place: _Place) -> Iterator[str]:
        """The number of each agent above the place where it goes most; several side by side."""
        homes: dict[int, list[int]] = {}
        for agent, row in enumerate(self.visits):
            if row:
                homes.setdefault(max(row, key=lambda action: row[action]), []).append(agent)
        for action, agents in homes.items():
            latitude, longitude = self.places.coordinates[action]
            x, y = place(longitude, latitude)
            for index, agent in enumerate(agents):
                left, up = x + (index - (len(agents) - 1) / 2) * 2 * HEAD, max(y - 20, HEAD + 1)
                yield svg.element("circle", cx=left, cy=up, r=HEAD, fill=agent_colour(agent), stroke="var(--on-agent)")
                yield svg.words(str(agent + 1), left, up + 4, "on-agent", "middle")

    def described(self) -> str:
        """Where each agent goes most."""
        rows = []
        for agent, row in enumerate(self.visits, 1):
            if row:
                action = max(row, key=lambda one: row[one])
                latitude, longitude = self.places.coordinates[action]
                rows.append(f"{self.agent} {agent} most at {latitude:.2f}, {longitude:.2f} ({row[action]:.0%})")
        return "; ".join(rows)


def _towns(shown: Region, place: _Place, width: Number, height: Number) -> Iterator[str]:
    """Names of towns that fit and do not touch each other."""
    taken: list[tuple[Number, Number, Number]] = []
    for town in shown.towns:
        x, y = place(town.longitude, town.latitude)
        end = x + LETTER * len(town.name) + 8
        free = all(abs(y - row) > 15 or x > right or left > end for left, row, right in taken)
        if free and end < width and 10 < y < height - 6:
            taken.append((x, y, end))
            yield svg.element("circle", cx=x, cy=y, r=1.8, fill="var(--soft)") + svg.words(
                town.name, x + 5, y + 4, "tick"
            )


def visits_of(analysis: Analysis) -> list[dict[int, float]]:
    """Shares of the visits of each agent by action, as far as they are among its most common ones in a round."""
    stop = analysis.coordination.stop
    agents = 1 + max((habit.agent for habit in analysis.coordination.habits), default=-1)
    counts: list[dict[int, float]] = [{} for _ in range(agents)]
    for habit in analysis.coordination.habits:
        for action, number in habit.actions:
            if action != stop:
                counts[habit.agent][action] = counts[habit.agent].get(action, 0.0) + number
    return [{action: number / sum(row.values()) for action, number in row.items()} for row in counts]
