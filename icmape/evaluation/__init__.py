"""How far a team's answers can be trusted."""

from icmape.evaluation.episodes import Episodes, Judged, play
from icmape.evaluation.metrics import Evaluation, calibration_error, evaluate, summarise, wilson_interval

__all__ = ["Episodes", "Evaluation", "Judged", "calibration_error", "evaluate", "play", "summarise", "wilson_interval"]
