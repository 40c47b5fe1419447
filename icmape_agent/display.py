"""How people see what agents do and read: words, and where actions are. Networks never read it.

A problem declares a `Display`; a team file holds it as JSON, and pages draw it without knowing the problem.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icmape_agent.kinds import need, whole

MOST_TEXT = 80  # characters of a word
MOST_SIDE = 1000  # rows or columns of a grid


@dataclass(frozen=True)
class Choices:
    """Actions are choices without a place."""


@dataclass(frozen=True)
class Places:
    """Actions are places on the earth. Maps show outlines and towns around them (`icmape_agent.geography`)."""

    coordinates: Sequence[tuple[float, float]]
    """Latitude and longitude of each action."""
    bounds: tuple[float, float, float, float]
    """South, north, west and east edge of the map."""
    area: tuple[float, float] | None = None
    """Height and width, in degrees, of the area that an action stands for."""


@dataclass(frozen=True)
class Cells:
    """Actions are cells of a grid."""

    rows: int
    columns: int
    cells: Sequence[int]
    """The cell of each action, counted row by row."""


@dataclass(frozen=True)
class Moves:
    """Actions are moves on a grid, and a reading holds the position after the move."""

    rows: int
    columns: int
    moves: Sequence[tuple[int, int]]
    """Rows and columns of each action. A move that leaves the grid is not made."""
    starts: Sequence[tuple[int, int]]
    """Row and column of each agent before round 0."""
    position: int
    """Number of the part of a reading that is the position: a row and a column."""
    window: int | None = None
    """Number of the part that shows the cells around the position."""


Actions = Choices | Places | Cells | Moves


@dataclass(frozen=True)
class Quantity:
    """What a part of a reading is."""

    label: str = ""
    unit: str = ""
    values: Sequence[str] = ()
    """Names of the values of a reading of few whole numbers, the smallest first, such as ("tails", "heads")."""


@dataclass(frozen=True)
class Display:
    """Words for people, and where actions are."""

    actions: Actions = field(default_factory=Choices)
    readings: Sequence[Quantity] = ()
    """Of each part of a reading, in order; none: the names of the parts."""
    agent: str = "agent"
    """What an agent is called."""
    verb: str = "Choose"
    """What it does with an action, before the action's name."""
    answers: str = ""
    """Where answers are: "actions" (each answer is at the place of the action with its number), "cells" (each is a cell
    of the grid) or nowhere."""


KINDS: dict[type, str] = {Choices: "choices", Places: "places", Cells: "cells", Moves: "moves"}
KEYS = {
    "choices": {"kind"},
    "places": {"kind", "coordinates", "bounds", "area"},
    "cells": {"kind", "rows", "columns", "cells"},
    "moves": {"kind", "rows", "columns", "moves", "starts", "position", "window"},
}
PLAIN: dict[str, Any] = {
    "agent": "agent",
    "verb": "Choose",
    "readings": [],
    "actions": {"kind": "choices"},
    "answers": "",
}
"""That of a team whose file has none."""


def describe_display(display: Display) -> dict[str, Any]:
    """A display as JSON values."""
    actions = display.actions
    described: dict[str, Any] = {"kind": KINDS[type(actions)], **vars(actions)}
    if "coordinates" in described:
        described["coordinates"] = [[round(float(x), 4) for x in place] for place in described["coordinates"]]
    return {
        "agent": display.agent,
        "verb": display.verb,
        "readings": [[quantity.label, quantity.unit, list(quantity.values)] for quantity in display.readings],
        "actions": {name: _plain(value) for name, value in described.items()},
        "answers": display.answers,
    }


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def check_display(described: Any, sizes: Any, shapes: Sequence[tuple[int, ...]], scores: int) -> dict[str, Any]:
    """A display from a file. Raises ValueError unless it fits.

    Given are the sizes of the problem, the shapes of the parts of a reading, and the number of scores of an answer.
    """
    need(isinstance(described, Mapping) and set(described) == set(PLAIN), "the display has other keys")
    for name in ("agent", "verb"):
        _text(described[name], name)
    readings, actions = described["readings"], described["actions"]
    need(isinstance(readings, list) and len(readings) in (0, len(shapes)), "the display needs a label for each part")
    for quantity in readings:
        need(isinstance(quantity, list) and len(quantity) == 3, "a reading has a label, a unit and names of values")
        need(isinstance(quantity[2], list) and len(quantity[2]) <= MOST_TEXT, "names of values must be a short list")
        for text in (*quantity[:2], *quantity[2]):
            _text(text, "a label, a unit or the name of a value")
    kind = actions.get("kind") if isinstance(actions, Mapping) else None
    need(kind in KEYS and set(actions) == KEYS[kind], "the display of actions cannot be read")
    if kind in CHECKS:
        CHECKS[kind](actions, sizes, shapes)
    places = {"": scores, "actions": sizes.actions, "cells": actions.get("rows", 0) * actions.get("columns", 0)}
    need(described["answers"] in places, "answers are at actions, at cells or nowhere")
    need(places[described["answers"]] == scores, "there are more or fewer answers than places for them")
    return dict(described)


def _check_places(actions: Mapping[str, Any], sizes: Any, shapes: Any) -> None:
    south, north, west, east = _numbers(actions["bounds"], 4, "the bounds of a map")
    need(-90 <= south < north <= 90 and -180 <= west < east <= 180, "the bounds of a map are no region")
    places = actions["coordinates"]
    need(isinstance(places, list) and len(places) == sizes.actions, "each action needs a place")
    for place in places:
        _numbers(place, 2, "a place")
    if actions["area"] is not None:
        need(min(_numbers(actions["area"], 2, "an area")) > 0, "an area must be positive")


def _check_cells(actions: Mapping[str, Any], sizes: Any, shapes: Any) -> None:
    rows, columns = _grid(actions)
    cells = actions["cells"]
    need(isinstance(cells, list) and len(cells) == sizes.actions, "each action needs a cell")
    for cell in cells:
        whole(cell, 0, rows * columns - 1, "a cell")


def _check_moves(actions: Mapping[str, Any], sizes: Any, shapes: Sequence[tuple[int, ...]]) -> None:
    rows, columns = _grid(actions)
    for name, count, low in (("moves", sizes.actions, -MOST_SIDE), ("starts", sizes.agents, 0)):
        pairs = actions[name]
        need(isinstance(pairs, list) and len(pairs) == count, f"{name} of the display need {count} entries")
        need(all(isinstance(pair, list) and len(pair) == 2 for pair in pairs), f"{name} are rows and columns")
        for row, column in pairs:
            whole(row, low, MOST_SIDE if low else rows - 1, name)
            whole(column, low, MOST_SIDE if low else columns - 1, name)
    position, window = whole(actions["position"], 0, len(shapes) - 1, "position"), actions["window"]
    need(math.prod(shapes[position]) == 2, "a position has a row and a column")
    if window is not None:
        need(len(shapes[whole(window, 0, len(shapes) - 1, "window")]) == 2, "a window has rows and columns")


def _grid(actions: Mapping[str, Any]) -> tuple[int, int]:
    return whole(actions["rows"], 1, MOST_SIDE, "rows"), whole(actions["columns"], 1, MOST_SIDE, "columns")


CHECKS = {"places": _check_places, "cells": _check_cells, "moves": _check_moves}


def _text(value: Any, what: str) -> None:
    need(isinstance(value, str) and len(value) <= MOST_TEXT, f"{what} must be a short text")


def _numbers(values: Any, count: int, what: str) -> list[float]:
    need(isinstance(values, list) and len(values) == count, f"{what} must be {count} numbers")
    fits = all(type(value) in (int, float) and math.isfinite(value) and abs(value) <= 360 for value in values)
    need(fits, f"{what} must be finite numbers in degrees")
    return [float(value) for value in values]
