"""Other priors that teams for source localization are tried under: the paper's robustness study."""

from icmape.evaluation.robustness import Sweep

BETA = (0.5, 1.0, 3.0, 5.0, 7.0)
INTENSITY = Sweep(
    "intensity",
    {"intensity_alpha": BETA, "intensity_beta": BETA},
    {"intensity_alpha": "α of the intensity's Beta prior", "intensity_beta": "β of the intensity's Beta prior"},
)
DISTANCE = Sweep(
    "distance",
    {"exact_distance": tuple(range(10, 49))},
    {"exact_distance": "distance of source and distractor (cells)"},
)
SWEEPS = (INTENSITY, DISTANCE)
