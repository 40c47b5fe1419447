"""Hotspot monitoring: which place has the highest concentration?"""

from icmape.zoo.hotspot.hotspot import Hotspot

__all__ = ["Hotspot"]
