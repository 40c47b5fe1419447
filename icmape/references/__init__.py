"""Rivals that do not learn."""

from icmape.references.open_loop import Schedule, Uniform, schedule_from_loads

__all__ = ["Schedule", "Uniform", "schedule_from_loads"]
