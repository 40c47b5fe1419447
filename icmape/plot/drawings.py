"""Which problem is drawn how."""

from typing import cast

from icmape.evaluation.single import Played
from icmape.plot.drawing import Drawing
from icmape.plot.timeline import Timeline
from icmape.problem import Problem
from icmape.problem.entry import entry_of


def drawing_class(problem: type[Problem]) -> type[Drawing]:
    """How a problem is drawn: as its entry says, or as a timeline."""
    entry = entry_of(problem)
    return Timeline if entry is None else cast(type[Drawing], entry.part("drawing", Timeline))


def drawing_of(played: Played) -> Drawing:
    """The drawing of an episode."""
    return drawing_class(type(played.problem))(played)
