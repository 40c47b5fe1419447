"""Which problem is drawn how."""

from icmape.evaluation.single import Played
from icmape.problems import Bandit, Hotspot, Problem, Signal
from icmape.reporting.drawing import Drawing
from icmape.reporting.hotspot import HotspotDrawing
from icmape.reporting.signal import SignalDrawing
from icmape.reporting.timeline import Timeline


class BanditDrawing(Timeline):
    """Arms, payoffs and capacities by name."""

    def short(self, action: int) -> str:
        """Its number."""
        return str(action + 1)

    def seen(self, agent: int, number: int) -> str:
        """Whether the last pull paid."""
        if number == 0:
            return ""
        return "paid" if self.played.episode.observations[number, agent] > 0 else "nothing"

    def mark(self, agent: int, number: int) -> str:
        """The same for the pull of a round."""
        return {"paid": "✓", "nothing": "✗"}[self.seen(agent, number + 1)]

    @property
    def caption(self) -> str:
        """Pulls."""
        return "cells: the arm pulled, ✓ paid or ✗ not; red: the true capacity"

    def part(self, index: int) -> str:
        """An arm."""
        return f"arm {index + 1}"

    def value(self, index: int) -> str:
        """A capacity."""
        return str(index + 1)


DRAWINGS: dict[type[Problem], type[Drawing]] = {
    Bandit: BanditDrawing,
    Signal: SignalDrawing,
    Hotspot: HotspotDrawing,
}
"""Problems with a picture of their own; add yours where your problem is defined."""


def drawing_class(problem: type[Problem]) -> type[Drawing]:
    """How a problem is drawn: as the nearest of its base classes that is known, or as a timeline."""
    return next((DRAWINGS[base] for base in problem.__mro__ if base in DRAWINGS), Timeline)


def drawing_of(played: Played) -> Drawing:
    """The drawing of an episode."""
    return drawing_class(type(played.problem))(played)
