"""Whether recorded sessions look like the worlds that a team was trained on."""

from icmape.evaluation.prior_check.check import PriorCheck, check_prior

__all__ = ["PriorCheck", "check_prior"]
