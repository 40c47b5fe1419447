"""Priors of the paper's robustness study."""

from icmape.evaluation.robustness import Sweep

BETA = (0.5, 1.0, 3.0, 5.0, 7.0)
MEANS = Sweep(
    "means",
    {"mean_alpha": BETA, "mean_beta": BETA},
    {
        "mean_alpha": "α of the means' Beta prior (larger: arms pay more often)",
        "mean_beta": "β of the means' Beta prior (larger: arms pay less often)",
    },
)
CAPACITIES = Sweep(
    "capacities",
    {"capacity_concentration": (0.1, 0.5, 1.0, 5.0, 10.0)},
    {"capacity_concentration": "θ of the capacities' Dirichlet prior (larger: more evenly spread)"},
    logarithmic=True,
)
SWEEPS = (MEANS, CAPACITIES)
