"""The course of the confidence: steps, as it changes only when a round has been read."""

from collections.abc import Sequence
from itertools import pairwise
from math import dist

CHANGE = 0.2  # seconds before and after which a step is drawn

Point = tuple[float, float]


def steps(heights: Sequence[float], left: float, width: float) -> list[Point]:
    """A level for each state, side by side, with upright lines between them."""
    wide = width / len(heights)
    return [(left + (number + end) * wide, y) for number, y in enumerate(heights) for end in (0, 1)]


def drawn(points: Sequence[Point], known: Sequence[float]) -> list[tuple[float, float]]:
    """Times, and the part of the steps that is drawn then: each level as soon as it is known."""
    lengths = [0.0]
    for before, after in pairwise(points):
        lengths.append(lengths[-1] + dist(before, after))
    parts = [length / lengths[-1] for length in lengths]
    stops = [(0.0, parts[1])]
    for number, time in enumerate(known[1:], 1):
        stops += [(time - CHANGE, parts[2 * number - 1]), (time + CHANGE, parts[2 * number + 1])]
    return stops


def percent(chance: float) -> str:
    """A probability as people read it; what is not certain is never shown as 100 % or 0 %."""
    return "> 99 %" if chance > 0.995 else "< 1 %" if chance < 0.005 else f"{100 * chance:.0f} %"
