"""Evaluation of teams: accuracy, τ, calibration, certificates, diagnosis and comparison."""

from icmape.evaluation.calibration import calibration_error
from icmape.evaluation.intervals import wilson_interval
from icmape.evaluation.metrics import Evaluation, evaluate, summarise
from icmape.evaluation.stop_curves import StopCurve, stop_curve
from icmape.play.episodes import Episodes, Judged, play

__all__ = [
    "Episodes",
    "Evaluation",
    "Judged",
    "StopCurve",
    "calibration_error",
    "evaluate",
    "play",
    "stop_curve",
    "summarise",
    "wilson_interval",
]
