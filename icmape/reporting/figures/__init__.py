"""Figures of analyses: each function takes numbers and returns a matplotlib figure. Nothing is computed here."""

from icmape.reporting.figures.performance import performance
from icmape.reporting.figures.reliability import reliability
from icmape.reporting.figures.style import save_figure
from icmape.reporting.figures.sweeps import heat_maps, lines
from icmape.reporting.figures.teamwork import habits, stoppers
from icmape.reporting.figures.time import dynamics, survival

__all__ = [
    "dynamics",
    "habits",
    "heat_maps",
    "lines",
    "performance",
    "reliability",
    "save_figure",
    "stoppers",
    "survival",
]
