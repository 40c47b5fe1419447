"""Hotspot monitoring: which place has the highest concentration?"""

from icmape.problem import Entry
from icmape.zoo.hotspot.hotspot import Hotspot

__all__ = ["ENTRY", "Hotspot"]

ENTRY = Entry(
    name="hotspot",
    problem=Hotspot,
    presets="icmape.zoo.hotspot.presets",
    baselines="icmape.zoo.hotspot.hotspot_rules:RULES",
    policies="icmape.zoo.hotspot.prior_map:POLICIES",
    commands="icmape.zoo.hotspot.commands.data:COMMANDS",
    drawing="icmape.zoo.hotspot.hotspot_drawing:HotspotDrawing",
)
