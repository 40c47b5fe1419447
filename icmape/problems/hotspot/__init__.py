"""Water-quality data, Gaussian-process fields fitted to them, and the problem of finding where they are highest."""

from icmape.problems.hotspot.hotspot import Hotspot

__all__ = ["Hotspot"]
