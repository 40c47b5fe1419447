"""Other priors that teams for source localization are tried under: the paper's robustness study."""

from icmape.evaluation.robustness import Sweep

BETA = (0.5, 1.0, 3.0, 5.0, 7.0)
INTENSITY = Sweep("intensity", {"intensity_alpha": BETA, "intensity_beta": BETA})
DISTANCE = Sweep("distance", {"exact_distance": tuple(range(10, 49))})
SWEEPS = (INTENSITY, DISTANCE)
