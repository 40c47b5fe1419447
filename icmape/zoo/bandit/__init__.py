"""Capacity identification: how many players can each arm serve at once?"""

from icmape.problem import Entry
from icmape.zoo.bandit.bandit import Bandit

__all__ = ["ENTRY", "Bandit"]

ENTRY = Entry(
    name="bandit",
    problem=Bandit,
    presets="icmape.zoo.bandit.presets",
    baselines="icmape.zoo.bandit.bandit_rules:RULES",
    sweeps="icmape.zoo.bandit.bandit_sweeps:SWEEPS",
    drawing="icmape.zoo.bandit.bandit_drawing:BanditDrawing",
)
