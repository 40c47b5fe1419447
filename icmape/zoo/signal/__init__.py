"""Source localization: in which cell of a grid is the signal's source?"""

from icmape.zoo.signal.signal import Signal

__all__ = ["Signal"]
