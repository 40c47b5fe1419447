"""Numbers that the paper prints. Values that it only shows in figures are left out."""

from typing import NamedTuple

from icmape.evaluation.calibration import Bin


class Printed(NamedTuple):
    """A method's numbers in the paper; none where it prints none."""

    accuracy: str | None = None
    tau: float | None = None

    @property
    def right(self) -> float | None:
        """The accuracy as a number; none if it is only described."""
        return float(self.accuracy) if self.accuracy and self.accuracy[0].isdigit() else None


FINAL: dict[str, dict[str, Printed]] = {
    "a3p5": {"icmape": Printed("0.91", 13.57)},
    "a5p3": {"icmape": Printed("about 0.9")},
    "signal": {"icmape": Printed("close to 0.9", 6.69)},
    "nitrate": {"icmape": Printed("close to 0.9")},
}
"""τ is the sum over its tables of active episodes (A3P5: printed as 13.5)."""

ABLATION: dict[str, Printed] = {
    "icmape": Printed("0.91", 13.5),
    "environment": Printed("0.21", 47.0),
    "threshold": Printed("0.70", 37.3),
    "no-cost": Printed("0.90", 50.0),
}

CALIBRATION: tuple[Bin, ...] = tuple(
    Bin(index / 10, (index + 1) / 10, size, confidence, accuracy)
    for index, (confidence, accuracy, size) in enumerate(
        (
            (0.03, 0.03, 69_777),
            (0.14, 0.13, 13_284),
            (0.23, 0.22, 8_793),
            (0.34, 0.33, 6_280),
            (0.46, 0.44, 8_143),
            (0.53, 0.53, 1_127),
            (0.66, 0.68, 2_599),
            (0.76, 0.74, 5_806),
            (0.85, 0.85, 10_361),
            (0.95, 0.95, 8_535),
        )
    )
)
"""A3P5, all rounds of 10,000 episodes; rounded to two digits."""
ECE = 0.0065
ECE_ROUNDING = (0.0029, 0.0096)  # range that the table's rounding allows

ACTIVE: dict[str, tuple[int, ...]] = {
    "a3p5": (*[10_000] * 11, 9_031, 6_279, 5_752, 4_236, 364),
    "signal": (10_000, 9_994, 9_459, 8_759, 8_338, 7_755, 6_783, 5_835),
}
"""Episodes that are active in each round."""

JOINT: tuple[tuple[tuple[int, ...], int, int], ...] = (
    ((2, 2, 2, 2, 2), 10_000, 10_000),
    ((2, 2, 2, 2, 2), 10_000, 10_000),
    ((2, 2, 2, 2, 2), 10_000, 10_000),
    ((2, 0, 2, 2, 2), 10_000, 10_000),
    ((2, 0, 0, 2, 2), 10_000, 10_000),
    ((0, 0, 0, 0, 0), 10_000, 10_000),
    ((0, 0, 0, 0, 1), 10_000, 10_000),
    ((1, 0, 0, 0, 1), 10_000, 10_000),
    ((1, 0, 0, 1, 1), 10_000, 10_000),
    ((1, 1, 1, 1, 1), 10_000, 10_000),
    ((1, 2, 1, 1, 1), 9_031, 10_000),
    ((1, 2, 2, 1, 1), 6_279, 9_031),
    ((1, 2, 2, 1, 1), 4_510, 6_279),
    ((1, 2, 2, 2, 1), 4_236, 5_752),
    ((0, 0, 0, 0, 0), 3_872, 4_236),
    ((0, 0, 0, 0, 0), 364, 364),
)
"""A3P5: the most common joint action of each round, its number of episodes, and the number of active ones."""

HABITS: tuple[tuple[tuple[str, float], ...], ...] = (
    (("down", 1.0), ("down", 1.0), ("right", 0.999)),
    (("down", 1.0), ("down", 1.0), ("right", 0.946)),
    (("right", 1.0), ("down", 1.0), ("right", 0.926)),
    (("up", 1.0), ("down", 1.0), ("up", 0.952)),
    (("up", 1.0), ("down", 1.0), ("up", 0.930)),
    (("up", 1.0), ("down", 1.0), ("up", 0.875)),
    (("right", 1.0), ("down", 1.0), ("left", 0.860)),
    (("right", 1.0), ("STOP", 1.0), ("up", 0.873)),
)
"""Source localization: the most common action of every agent and round, and its share."""

STOPPERS: dict[str, dict[int, float]] = {
    "a3p5": {1: 0.379, 2: 0.395, 3: 0.196, 4: 0.026, 5: 0.003},
    "signal": {1: 0.926, 2: 0.074, 3: 0.0},
}
"""Number of agents that stop together, as shares of voluntary stops."""

ROBUSTNESS: dict[tuple[str, str], str] = {
    ("a3p5", "means"): "α > β: above 0.95; α ≤ β: 0.67–0.96",
    ("a3p5", "capacities"): "“remains robust”",
    ("signal", "intensity"): "α > β: 0.8–0.9; α ≤ β: about 0.9",
    ("signal", "distance"): "above 0.85 throughout",
}

COST = {"a3p5": "about 60 h (L40S)", "a5p3": "about 60 h (L40S)", "signal": "about 15 h (L40S)"}

VARIANCE = "0.31 (0.18–0.53)"
"""Nitrate: mean posterior variance of a year's fields."""
