"""Outlines of states, water and towns for maps of a region."""

from icmape_agent.geography.region import Land, Region, Town, answers_by_towns, by_towns, map_of, region

__all__ = ["Land", "Region", "Town", "answers_by_towns", "by_towns", "map_of", "region"]
