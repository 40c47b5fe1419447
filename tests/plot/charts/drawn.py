"""What stands in a drawing: its elements, and the numbers that a reader would take from it with the axes.

Positions are turned into numbers with the numbers written at the axes alone, so a wrong scale is found.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np

from icmape.plot.charts import Chart

SVG = "{http://www.w3.org/2000/svg}"


def parsed(chart: Chart, width: float = 720.0) -> ET.Element:
    """The drawing at a width; it is well-formed XML."""
    return ET.fromstring(f"<svg>{chart.draw(width)[1]}</svg>")


def every(drawing: ET.Element, tag: str, kind: str = "") -> list[ET.Element]:
    """Elements by name and class."""
    return [one for one in drawing.iter(tag) if kind in one.get("class", "").split() or not kind]


def texts(drawing: ET.Element) -> list[str]:
    return [one.text or "" for one in drawing.iter() if one.tag.removeprefix(SVG) == "text"]


def number(text: str) -> float | None:
    """The number that an axis shows; none for other words."""
    match = re.fullmatch(r"(-?[\d.]+)(%|k|M|G)?", text)
    if match is None:
        return None
    return float(match[1]) * {None: 1.0, "%": 0.01, "k": 1e3, "M": 1e6, "G": 1e9}[match[2]]


def read_across(drawing: ET.Element, log: bool = False) -> Callable[[float], float]:
    """The number at a position, from the numbers below the panel."""
    return _read(drawing, "x", "middle", log)


def read_up(drawing: ET.Element) -> Callable[[float], float]:
    """The number at a height, from the numbers beside the panel."""
    return _read(drawing, "y", "end", False)


def _read(drawing: ET.Element, which: str, anchor: str, log: bool) -> Callable[[float], float]:
    marks = [one for one in every(drawing, "text", "tick") if one.get("text-anchor") == anchor]
    pairs = [(float(one.get(which, "")), value) for one in marks if (value := number(one.text or "")) is not None]
    places, values = np.array(pairs).T
    places = places - 4 if which == "y" else places  # words stand 4 pixels below the middle of their line
    slope, offset = np.polyfit(places, np.log(values) if log else values, 1)
    return lambda place: float(np.exp(slope * place + offset)) if log else float(slope * place + offset)


def corners(path: ET.Element) -> list[tuple[float, float]]:
    """The corners of a path."""
    numbers = [float(one) for one in re.findall(r"-?[\d.]+", path.get("d", ""))]
    return list(zip(numbers[::2], numbers[1::2], strict=True))
