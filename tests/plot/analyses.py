"""Analyses written down by hand, for tables and figures that must show what they say."""

import xml.etree.ElementTree as ET

import numpy as np

from icmape.evaluation.analysis import Analysis, Distance
from icmape.evaluation.calibration import calibrate
from icmape.evaluation.coordination import coordination
from icmape.evaluation.coverage import Coverage
from icmape.evaluation.intervals import wilson_interval
from icmape.evaluation.metrics import Evaluation
from icmape.evaluation.robustness import Sweep, SweepPoint
from icmape.plot.items import Plot
from tests.plot.charts.drawn import texts as written


def evaluation(accuracy: float = 0.91, tau: float = 13.5, **changes) -> Evaluation:
    low, high = wilson_interval(round(10_000 * accuracy), 10_000)
    numbers = {"readings": 60.0, "confidence": 0.905, "log_loss": 0.4}
    numbers |= {"exact_accuracy": 0.92, "exact_ece": 0.003, "exact_log_loss": 0.3, **changes}
    return Evaluation(
        accuracy=accuracy, accuracy_low=low, accuracy_high=high, tau=tau, tau_error=0.03, rounds=tau - 1, forced=0.012,
        ece=0.0123, no_data_accuracy=0.05, exact="exact", episodes=10_000, seed=0, delta=0.1, **numbers,
    )  # fmt: skip


def analysis(accuracy: float = 0.91, tau: float = 13.5, agents: int = 2) -> Analysis:
    """Four episodes: agent 1 stops first, then all, then nobody, then the last; others play 0 and 1."""
    stop = np.array([2, 1, 3, 1])
    actions = np.zeros((4, 4, agents), int)
    actions[:, 0] = np.arange(agents) % 2
    actions[0, 2, 0] = actions[3, 1, -1] = 2
    actions[1, 1] = actions[2, 3] = 2
    chance = np.random.default_rng(0)
    confidence = chance.uniform(0.2, 1.0, 500)
    found = calibrate(confidence, chance.uniform(size=500) < confidence, np.full(500, 0.5))
    return Analysis(
        evaluation(accuracy, tau),
        found,
        found,
        found,
        found,
        Distance(0.021, 0.034, 0.05, 500),
        tuple(Coverage(level, level + 0.01, 2.5, 500) for level in (0.8, 0.9, 0.95)),
        (4, 4, 2, 1, 0),
        coordination(actions, stop, 2, 4),
        {0: "arm 1", 1: "arm 2", 2: "STOP"},
    )


def points(axes: dict) -> list[SweepPoint]:
    """A point for every combination."""
    rows = enumerate(Sweep("s", axes).points())
    return [
        SweepPoint(c, 0.8 + 0.01 * i, 0.78 + 0.01 * i, 0.82 + 0.01 * i, 5.0 + i, 0.1, 0.0, 0.02, 0.9, 500)
        for i, c in rows
    ]


def texts(plot: Plot) -> list[str]:
    """All that is written in the file of a plot."""
    return written(ET.fromstring(plot.chart.file()))
