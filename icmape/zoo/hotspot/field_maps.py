"""Concentration fields as maps: cells in degrees, colours in mg/L, and the figures of whole years."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icmape.plot.drawing import DPI
from icmape.plot.panels import legend_mark
from icmape.zoo.hotspot.hotspot import UNIT, Hotspot
from icmape.zoo.hotspot.region import Grid, side
from icmape.zoo.hotspot.statistics import YearMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

FIELD, DEVIATION = "viridis", "cividis"
INVALID = "#E4E4E4"
HIGHEST = "#E3001B"
RING: dict[str, Any] = {"marker": "o", "markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.6}
"""The highest cells, in a legend."""
SYNTHETIC = "synthetic: no real measurements"
DEVIATION_UNIT = "standard deviation of log(1 + mg/L)"
TICKS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
WIDTH = 5.4  # inches of a year's map
ROOM = 0.45  # inches for the title, and as much for the labels below


def panel_ratio(grid: Grid) -> float:
    """Ratio of height to width of a region, on the ground."""
    return (grid.north - grid.south) / ((grid.east - grid.west) * _shrink(grid))


def _shrink(grid: Grid) -> float:
    """Ratio of a degree of longitude to one of latitude, in the middle of the region."""
    return math.cos(math.radians((grid.north + grid.south) / 2))


def draw_cells(axis: Axes, problem: Hotspot, values: np.ndarray, **look: Any) -> Any:
    """Values of the valid cells as colours, the others in grey; returns the image for a colour bar."""
    grid = problem.grid
    cells = np.full(grid.size, np.nan)
    cells[problem.cells] = values
    axis.set_facecolor(INVALID)
    axis.autoscale(False)  # whatever is drawn on top, the region stays
    axis.set(xlim=(grid.west, grid.east), ylim=(grid.south, grid.north))
    return axis.imshow(
        np.ma.masked_invalid(cells.reshape(grid.rows, grid.columns)),
        extent=(grid.west, grid.east, grid.south, grid.north),
        aspect=1 / _shrink(grid),
        interpolation="nearest",
        **look,
    )


def encircle(axis: Axes, problem: Hotspot, actions: Iterable[Any], scale: float = 1.0) -> None:
    """Rings around some of the valid cells, with a white rim."""
    from matplotlib.patches import Ellipse

    height, width = cell_size(problem.grid)
    line = 1.5 * scale**0.5
    middles = problem.coordinates[np.asarray(list(actions), int)]
    # all of the white first: rings of neighbours must not cover each other
    for colour, thickness, layer in (("white", 2 * line, 4.0), (HIGHEST, line, 4.1)):
        for latitude, longitude in middles.tolist():
            look: dict[str, Any] = {"edgecolor": colour, "linewidth": thickness, "zorder": layer, "clip_on": False}
            axis.add_patch(Ellipse((longitude, latitude), 1.3 * width, 1.3 * height, fill=False, **look))


def cell_size(grid: Grid) -> tuple[float, float]:
    """Degrees of latitude and of longitude."""
    return (grid.north - grid.south) / grid.rows, (grid.east - grid.west) / grid.columns


def concentration_colours(highest: float) -> Normalize:
    """Colours from 0 to the highest concentration, even in log(1 + concentration) as fields are."""
    from matplotlib.colors import FuncNorm

    return FuncNorm((np.log1p, np.expm1), vmin=0.0, vmax=max(highest, 0.5))


def concentration_ticks(norm: Normalize) -> list[float]:
    """Round concentrations for a colour bar."""
    return [tick for tick in TICKS if tick <= float(norm.vmax or 0)]


def bar_of_concentration(figure: Figure, shown: Any, label: str = UNIT, **place: Any) -> Any:
    """A colour bar in mg/L."""
    bar = figure.colorbar(shown, **place)
    ticks = concentration_ticks(shown.norm)
    bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    bar.minorticks_off()
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    return bar


def degrees(axis: Axes, labels_left: bool = True, labels_below: bool = True) -> None:
    """Degrees on the axes, with compass letters."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axis.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda degree, _: side(degree, "EW", "°")))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda degree, _: side(degree, "NS", "°")))
    axis.tick_params(labelsize=8, labelleft=labels_left, labelbottom=labels_below)


def highest_cells(values: np.ndarray, k: int) -> np.ndarray:
    """The k highest, the first of them first."""
    return np.argsort(-values, kind="stable")[:k]


def field_legend(problem: Hotspot) -> list[Any]:
    """Legend of a map of a field."""
    from matplotlib.patches import Patch

    made_up = [] if problem.synthetic is None else [Patch(label=SYNTHETIC, facecolor="none", edgecolor="none")]
    return [
        legend_mark(label=f"the {problem.k} highest cells", color=HIGHEST, **RING),
        Patch(label="no valid cell", facecolor=INVALID, edgecolor="#AAAAAA", linewidth=0.6),
        *made_up,
    ]


# -- whole years


def write_maps(problem: Hotspot, maps: Sequence[YearMap], folder: Path) -> list[Path]:
    """map-YEAR.png of each year, and maps.png with all of them; in all of them a colour means the same."""
    norm = concentration_colours(max(float(drawn.concentration.max()) for drawn in maps))
    figures = {f"map-{drawn.year}.png": year_figure(problem, drawn, norm) for drawn in maps}
    figures["maps.png"] = years_figure(problem, maps, norm)
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=DPI)
    return [folder / name for name in figures]


def year_title(drawn: YearMap) -> str:
    """2003 (training)."""
    return f"{drawn.year} ({'training' if drawn.training else 'test'})"


def year_figure(problem: Hotspot, drawn: YearMap, norm: Normalize) -> Figure:
    """The map of one year."""
    from matplotlib.figure import Figure

    height = WIDTH * panel_ratio(problem.grid) + 2 * ROOM
    figure = Figure(figsize=(WIDTH + 1.4, height), layout="compressed")
    axis = figure.subplots()
    shown = _year_field(axis, problem, drawn, norm)
    axis.set_title(year_title(drawn), fontsize=12)
    bar_of_concentration(figure, shown, ax=axis, fraction=0.04, pad=0.02)
    figure.legend(handles=_legend(problem), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def years_figure(problem: Hotspot, maps: Sequence[YearMap], norm: Normalize) -> Figure:
    """Fields of several years with one scale, and their standard deviations below."""
    from matplotlib.figure import Figure

    width = 0.8 * WIDTH
    size = (len(maps) * width + 1.2, 2 * (width * panel_ratio(problem.grid) + ROOM))
    figure = Figure(figsize=size, layout="compressed")
    axes = figure.subplots(2, len(maps), squeeze=False, sharex=True, sharey=True)
    highest = max(float(np.max(drawn.field.deviation)) for drawn in maps)
    for column, drawn in enumerate(maps):
        field = _year_field(axes[0, column], problem, drawn, norm, labels=(column == 0, False))
        axes[0, column].set_title(year_title(drawn), fontsize=12)
        deviation = draw_cells(
            axes[1, column], problem, np.asarray(drawn.field.deviation), cmap=DEVIATION, vmin=0.0, vmax=highest
        )
        _stations(axes[1, column], problem, drawn, "white")
        degrees(axes[1, column], column == 0)
    bar_of_concentration(figure, field, ax=axes[0], fraction=0.03, pad=0.01)
    bar = figure.colorbar(deviation, ax=axes[1], fraction=0.03, pad=0.01)
    bar.set_label(DEVIATION_UNIT, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    figure.legend(handles=_legend(problem), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _year_field(
    axis: Axes, problem: Hotspot, drawn: YearMap, norm: Normalize, labels: tuple[bool, bool] = (True, True)
) -> Any:
    shown = draw_cells(axis, problem, drawn.concentration, cmap=FIELD, norm=norm)
    _stations(axis, problem, drawn, "white")
    encircle(axis, problem, highest_cells(drawn.concentration, problem.k))
    degrees(axis, *labels)
    return shown


def _stations(axis: Axes, problem: Hotspot, drawn: YearMap, colour: str) -> None:
    """A dot at every station that was read."""
    height, width = cell_size(problem.grid)
    latitude = problem.grid.north - drawn.places[:, 0] * height
    longitude = problem.grid.west + drawn.places[:, 1] * width
    axis.scatter(longitude, latitude, s=7, c=colour, edgecolors="black", linewidths=0.5, zorder=3, clip_on=False)


def _legend(problem: Hotspot) -> list[Any]:
    dot: dict[str, Any] = {"marker": "o", "markersize": 3.5, "color": "white", "markeredgecolor": "black"}
    return [legend_mark(label="station", markeredgewidth=0.6, **dot), *field_legend(problem)]
