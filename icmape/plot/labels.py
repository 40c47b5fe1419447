"""Placement of labels: close to what they name, with little overlap."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

DISTANCES = (5, 10, 18, 28, 40, 54, 70)  # points between a label and what it names
DIRECTIONS = ((1, 0), (0.7, 0.7), (0.7, -0.7), (-1, 0), (-0.7, 0.7), (-0.7, -0.7), (0, 1), (0, -1))
LEADER = 12  # points; labels further away get a line
PASSES = 4
UNIT = 20  # points: areas are counted in squares of this side
OTHER_LABELS, OUTSIDE, FARTHER = 8.0, 100.0, 0.012  # costs of overlap, of leaving the frame, of a point of distance


class Box(NamedTuple):
    """A rectangle on the page, in pixels."""

    left: float
    bottom: float
    right: float
    top: float

    def grown(self, by: float) -> "Box":
        """The same with a margin."""
        return Box(self.left - by, self.bottom - by, self.right + by, self.top + by)


class Label(NamedTuple):
    """A text, its possible anchors (in pixels) and its style."""

    text: str
    anchors: Sequence[tuple[float, float]]
    look: dict[str, Any]


class Place(NamedTuple):
    """A possible place of a label."""

    box: Box
    anchor: tuple[float, float]
    distance: float


def overlaps(first: Sequence[Box], second: Sequence[Box]) -> np.ndarray:
    """Common area of every pair."""
    a = np.asarray(first, float).reshape(-1, 1, 4)
    b = np.asarray(second, float).reshape(1, -1, 4)
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    return np.prod(np.maximum(sides, 0), axis=-1)


def place_labels(axis: Any, labels: Sequence[Label], covered: Sequence[tuple[Box, float]]) -> list[Box]:
    """Write all labels inside an axis. `covered` are rectangles with the cost of covering them; returns the boxes."""
    scale = axis.figure.dpi / 72
    frame = Box(*axis.get_window_extent().extents).grown(-2 * scale)
    covered = [(box, weight) for box, weight in covered if overlaps([box], [frame]).item() > 0]
    options = [_options(label, _size(axis, label), scale) for label in labels]
    costs = [_costs(places, covered, frame, scale) for places in options]
    best = [int(np.argmin(cost)) for cost in costs]
    for _ in range(PASSES):  # each label moves to its best place, given the others
        for index, places in enumerate(options):
            others = [options[i][at].box for i, at in enumerate(best) if i != index]
            boxes = [place.box.grown(1.5 * scale) for place in places]
            hidden = overlaps(boxes, others).sum(axis=1) / (UNIT * scale) ** 2
            best[index] = int(np.argmin(costs[index] + OTHER_LABELS * hidden))
    chosen = [places[at] for places, at in zip(options, best, strict=True)]
    for label, place in zip(labels, chosen, strict=True):
        _write(axis, label, place)
    return [place.box for place in chosen]


def _size(axis: Any, label: Label) -> tuple[float, float]:
    text = axis.text(0, 0, label.text, **label.look)
    extent = text.get_window_extent()
    text.remove()
    return extent.width, extent.height


def _options(label: Label, size: tuple[float, float], scale: float) -> list[Place]:
    return [place for anchor in label.anchors for place in _around(anchor, size, scale)]


def _around(anchor: tuple[float, float], size: tuple[float, float], scale: float) -> Iterator[Place]:
    """Places around a point: nearest first, to the right before to the left."""
    (x, y), (width, height) = anchor, size
    for distance in DISTANCES:
        for right, up in DIRECTIONS:
            middle_x = x + right * distance * scale + (math.copysign(width / 2, right) if right else 0)
            middle_y = y + up * distance * scale + (math.copysign(height / 2, up) if abs(up) == 1 else 0)
            box = Box(middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2)
            yield Place(box, anchor, distance)


def _costs(places: list[Place], covered: Sequence[tuple[Box, float]], frame: Box, scale: float) -> np.ndarray:
    """Cost of each place: covered area, distance and area outside the frame."""
    boxes = [place.box.grown(1.5 * scale) for place in places]
    hidden = overlaps(boxes, [box for box, _ in covered]) @ np.array([weight for _, weight in covered])
    sides = np.asarray(boxes).reshape(-1, 4)
    outside = np.prod(sides[:, 2:] - sides[:, :2], axis=1) - overlaps(boxes, [frame])[:, 0]
    return (hidden + OUTSIDE * outside) / (UNIT * scale) ** 2 + FARTHER * np.array([place.distance for place in places])


def _write(axis: Any, label: Label, place: Place) -> None:
    import matplotlib.patheffects as effects

    to_data = axis.transData.inverted()
    box, (x, y) = place.box, place.anchor
    if place.distance > LEADER:
        nearest = min(max(x, box.left), box.right), min(max(y, box.bottom), box.top)
        ends = to_data.transform([nearest, (x, y)])
        axis.plot(ends[:, 0], ends[:, 1], color=label.look["color"], linewidth=0.7, alpha=0.8, zorder=2.5)
    middle = to_data.transform(((box.left + box.right) / 2, (box.bottom + box.top) / 2))
    text = axis.text(*middle, label.text, ha="center", va="center", zorder=6, **label.look)
    text.set_path_effects([effects.withStroke(linewidth=2.5, foreground="white")])
