"""Figures of analyses: each function takes numbers and returns a matplotlib figure."""

from icmape.plot.figures.equal import equal_accuracy
from icmape.plot.figures.performance import performance
from icmape.plot.figures.prior_sweeps import heat_maps, lines
from icmape.plot.figures.reliability import reliability
from icmape.plot.figures.style import save_figure
from icmape.plot.figures.teamwork import habits, stoppers
from icmape.plot.figures.time import dynamics, survival

__all__ = [
    "dynamics",
    "equal_accuracy",
    "habits",
    "heat_maps",
    "lines",
    "performance",
    "reliability",
    "save_figure",
    "stoppers",
    "survival",
]
