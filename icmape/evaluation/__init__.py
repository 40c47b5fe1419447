"""Evaluation of teams: accuracy, τ, calibration, certificates, diagnosis and comparison."""

from icmape.evaluation.calibration import calibration_error
from icmape.evaluation.intervals import wilson_interval
from icmape.evaluation.metrics import Evaluation, evaluate, summarise
from icmape.play.episodes import Episodes, Judged, play

__all__ = ["Episodes", "Evaluation", "Judged", "calibration_error", "evaluate", "play", "summarise", "wilson_interval"]
