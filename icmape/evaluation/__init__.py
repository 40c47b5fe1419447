"""How far a team's answers can be trusted."""

from icmape.evaluation.calibration import calibration_error
from icmape.evaluation.episodes import Episodes, Judged, play
from icmape.evaluation.intervals import wilson_interval
from icmape.evaluation.metrics import Evaluation, evaluate, summarise

__all__ = ["Episodes", "Evaluation", "Judged", "calibration_error", "evaluate", "play", "summarise", "wilson_interval"]
