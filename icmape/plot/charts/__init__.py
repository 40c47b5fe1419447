"""Charts as SVG in the colours of `icmape_agent.look`: they follow light and dark, and fit phones."""

from icmape.plot.charts.apart import ApartDots
from icmape.plot.charts.bars import Act, Bars, Moment, Timeline
from icmape.plot.charts.chart import Chart, Key, page_style
from icmape.plot.charts.curves import Curves, Panel, Series
from icmape.plot.charts.dots import Dot, DotPanel, Dots
from icmape.plot.charts.heat import Grid, Heat
from icmape.plot.charts.look import agent_colour, family_of, method_colour, method_strokes
from icmape.plot.charts.scales import Axis

__all__ = [
    "Act",
    "ApartDots",
    "Axis",
    "Bars",
    "Chart",
    "Curves",
    "Dot",
    "DotPanel",
    "Dots",
    "Grid",
    "Heat",
    "Key",
    "Moment",
    "Panel",
    "Series",
    "Timeline",
    "agent_colour",
    "family_of",
    "method_colour",
    "method_strokes",
    "page_style",
]
