"""Capacity identification: how many players can each arm serve at once?"""

from icmape.zoo.bandit.bandit import Bandit

__all__ = ["Bandit"]
