"""A team is policy, stop and inference: save it, load it, let it act."""

from icmape.learning.parts import (
    Behaviour,
    ExactInference,
    FixedLength,
    LearnedStop,
    NetworkInference,
    TeamInference,
    Threshold,
)
from icmape.teams.answer import Answer
from icmape.teams.files import load, save, shipped
from icmape.teams.own_readings import OwnReadings
from icmape.teams.team import STOP, Agent, Team

__all__ = [
    "STOP",
    "Agent",
    "Answer",
    "Behaviour",
    "ExactInference",
    "FixedLength",
    "LearnedStop",
    "NetworkInference",
    "OwnReadings",
    "Team",
    "TeamInference",
    "Threshold",
    "load",
    "save",
    "shipped",
]
