"""Axes: ranges, round numbers on them, and positions in pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from icmape.plot.charts.svg import Number

MARGIN = 0.05  # of the range, beyond the data on both sides


@dataclass(frozen=True)
class Axis:
    """What an axis shows, with its unit. Ends that are not given are those of the data."""

    label: str
    low: Number | None = None
    high: Number | None = None
    log: bool = False
    percent: bool = False  # numbers as percentages
    ticks: Sequence[Number] = ()  # numbers at the axis; by default round ones

    def fitted(self, values: Iterable[Number]) -> Axis:
        """The axis with both ends, around the values."""
        known = [value for value in values if math.isfinite(value)]
        known += [end for end in (self.low, self.high) if end is not None] or ([] if known else [0.0, 1.0])
        low, high = min(known), max(known)
        if self.log:
            low, high = low / 1.15, high * 1.15
        else:
            margin = MARGIN * (high - low) or 0.5
            low, high = low - margin, high + margin
        return replace(self, low=low if self.low is None else self.low, high=high if self.high is None else self.high)

    def scale(self, start: Number, end: Number) -> Scale:
        """The axis between two positions in pixels. Both of its ends are known."""
        assert self.low is not None
        assert self.high is not None
        return Scale(self, self.low, self.high, start, end)

    def written(self, value: Number) -> str:
        """A number at the axis."""
        if self.percent:
            return f"{100 * value:g}%"
        for least, size, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
            if abs(value) >= least:
                return f"{value / size:g}{unit}"
        return f"{value:g}"


@dataclass(frozen=True)
class Scale:
    """Positions of an axis's numbers."""

    axis: Axis
    low: Number
    high: Number
    start: Number
    end: Number

    def __call__(self, value: Number) -> Number:
        """Position of a number."""
        low, high, at = self.low, self.high, value
        if self.axis.log:
            low, high, at = math.log(low), math.log(high), math.log(max(value, 1e-300))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def holds(self, value: Number) -> bool:
        """Whether a number is on the axis."""
        slack = 1e-9 * (self.high - self.low)
        return self.low - slack <= value <= self.high + slack

    def ticks(self, most: int) -> list[Number]:
        """Numbers at the axis, at most `most` if they are not given."""
        given = self.axis.ticks or (_powers(self.low, self.high) if self.axis.log else steps(self.low, self.high, most))
        return [value for value in given if self.holds(value)]


def steps(low: Number, high: Number, most: int) -> list[Number]:
    """Multiples of 1, 2 or 5 times a power of ten, at most `most`."""
    size = 10 ** math.floor(math.log10((high - low) / max(most, 1)))
    for factor in (1, 2, 5, 10, 20, 50):
        step = size * factor
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 <= most:
            return [float(f"{index * step:.12g}") for index in range(first, last + 1)]
    return [low, high]


def _powers(low: Number, high: Number) -> list[Number]:
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    powers = [10.0**exponent for exponent in exponents]
    between = [value for power in powers for value in (power, 2 * power, 5 * power) if low <= value <= high]
    whole = [power for power in powers if low <= power <= high]
    return whole if len(whole) > 1 else between
