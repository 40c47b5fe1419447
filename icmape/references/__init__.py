"""Rivals that do not learn."""

from icmape.references.open_loop import Schedule, Uniform, schedule_from_loads
from icmape.references.prior_map import PriorMap

__all__ = ["PriorMap", "Schedule", "Uniform", "schedule_from_loads"]
