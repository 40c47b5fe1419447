"""Common style of figures: colour-blind safe colours, sizes, captions, and files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icmape.io import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 130
GREY = "#555555"
MOST_INSIDE = 5  # entries of a legend that stands on its axis
PALETTE = (
    *("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc"),
    *("#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9"),
)
HOUSE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": ".8",
    "axes.grid": True,
    "axes.labelcolor": ".15",
    "axes.labelsize": 10,
    "axes.linewidth": 1.0,
    "axes.titlesize": 10,
    "font.size": 10,
    "font.family": "sans-serif",
    "grid.color": ".8",
    "grid.linewidth": 0.8,
    "legend.fontsize": 9,
    "lines.linewidth": 1.2,
    "text.color": ".15",
    "xtick.color": ".15",
    "xtick.labelsize": 9,
    "ytick.color": ".15",
    "ytick.labelsize": 9,
}
TARGET: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1}


def colours(count: int) -> list[Any]:
    """This many colours; distinct and colour-blind safe up to ten."""
    return [PALETTE[index % len(PALETTE)] for index in range(count)]


def strokes(count: int) -> list[dict[str, Any]]:
    """Colours, and other dashes beyond ten lines."""
    dashes = ("-", "--", "-.", ":")
    return [{"color": colours(10)[i % 10], "linestyle": dashes[i // 10 % len(dashes)]} for i in range(count)]


def new_figure(
    columns: int = 1, rows: int = 1, *, width: float = 4.8, height: float = 3.6, **options: Any
) -> tuple[Figure, list[Axes]]:
    """An empty figure with panels, in the common style."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(HOUSE):
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options).ravel().tolist()
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def explain(figure: Figure, title: str, below: str = "", mark: str = "") -> Figure:
    """Add a title, a small caption below, and a watermark for quick runs."""
    figure.suptitle(f"{title}  [{mark}]" if mark else title, fontsize=11)
    if below:
        figure.supxlabel(below, fontsize=8, color=GREY)
    if mark:
        look: dict[str, Any] = {"fontsize": 34, "color": "#D55E00", "alpha": 0.16, "rotation": 20, "weight": "bold"}
        figure.text(0.5, 0.5, mark, ha="center", va="center", zorder=10, **look)
    return figure


def legend(axis: Axes, **place: Any) -> None:
    """A small legend, if there are labels; long ones are beside the axis."""
    count = len(axis.get_legend_handles_labels()[0])
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    if count:
        axis.legend(**{"fontsize": 8, "framealpha": 0.9, **(beside if count > MOST_INSIDE else place)})


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write STEM.png and STEM.svg, deterministically."""
    from matplotlib import rc_context

    paths = []
    with rc_context({"svg.hashsalt": stem.name, "svg.fonttype": "none"}):
        for kind, options in (("png", {"dpi": DPI}), ("svg", {"metadata": {"Date": None}})):
            content = io.BytesIO()
            figure.savefig(content, format=kind, **options)
            paths.append(stem.with_name(f"{stem.name}.{kind}"))
            write_atomically(paths[-1], content.getvalue())
    return paths
