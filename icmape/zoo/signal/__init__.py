"""Source localization: in which cell of a grid is the signal's source?"""

from icmape.problem import Entry
from icmape.zoo.signal.signal import Signal

__all__ = ["ENTRY", "Signal"]

ENTRY = Entry(
    name="signal",
    problem=Signal,
    presets="icmape.zoo.signal.presets",
    baselines="icmape.zoo.signal.signal_rules:RULES",
    policies="icmape.zoo.signal.thompson:POLICIES",
    sweeps="icmape.zoo.signal.signal_sweeps:SWEEPS",
    drawing="icmape.zoo.signal.signal_drawing:SignalDrawing",
)
