"""Teams (policy, stop and inference), their episodes and their files."""

from icmape.play.answer import Answer
from icmape.play.inference import ExactInference, NetworkInference, TeamInference
from icmape.play.own_readings import OwnReadings
from icmape.play.stop import Behaviour, FixedLength, LearnedStop, Threshold
from icmape.play.team import STOP, Agent, Team
from icmape.play.team_files import load, pretrained, save

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
    "pretrained",
    "save",
]
