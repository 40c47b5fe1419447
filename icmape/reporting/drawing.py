"""What a picture of an episode is: words for the log, a strip, and frames for the animation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array, Key

from icmape.errors import UserError
from icmape.evaluation.single import Played
from icmape.problems import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 110
PACE = 1  # frames a second
HOLD = 4  # frames' time that the last one stays


class Drawing(ABC):
    """An episode told in words and drawn. A problem with a picture of its own has a subclass (see `drawings`)."""

    played: Played

    def __init__(self, played: Played):
        self.played = played

    # -- words

    def action(self, action: int) -> str:
        """Name of an action."""
        return str(action)

    def place(self, agent: int, number: int) -> str:
        """Where an agent is in a round, if it is anywhere."""
        return ""

    def seen(self, agent: int, number: int) -> str:
        """What an agent saw last when it decides in a round, in a few words."""
        leaves = jax.tree.leaves(self.played.episode.observations)
        single = len(leaves) == 1 and leaves[0].ndim == 2
        return f"{leaves[0][number, agent]:.3g}" if single and number > 0 else ""

    def answer(self, decision: Any) -> str:
        """A hypothesis."""
        values = np.asarray(decision)
        return str(int(values)) if values.ndim == 0 else " ".join(map(str, values.tolist()))

    def choice(self, agent: int, number: int) -> str:
        """What an agent chose in a round."""
        action = int(self.played.episode.actions[number, agent])
        return "STOP" if action == self.played.problem.actions else self.action(action)

    # -- pictures

    @abstractmethod
    def strip(self) -> Figure:
        """The whole episode in one picture."""

    @property
    @abstractmethod
    def frame_size(self) -> tuple[float, float]:
        """Inches of a frame."""

    @abstractmethod
    def frame(self, figure: Figure, number: int) -> None:
        """Draw the episode up to a round on an empty figure."""

    @classmethod
    def field(cls, problem: Problem, world: Any, key: Key[Array, ""]) -> Figure:
        """A picture of a world without any team, for problems that have one."""
        raise UserError(f"{type(problem).__name__} has no field to be drawn: --field is for problems on a grid")


def verdict(played: Played) -> str:
    """How it ended."""
    return "right" if bool(played.correct[-1]) else "wrong"


def probability(value: float | np.floating) -> str:
    """Two digits, and one that counts where that would be 0.00."""
    return f"{value:.2f}" if value >= 0.01 else f"{value:.1g}"


def write_episode(drawing: Drawing, folder: Path) -> list[Path]:
    """episode.png and episode.gif, which has a frame for every round."""
    from matplotlib.animation import PillowWriter
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    picture, animation = folder / "episode.png", folder / "episode.gif"
    drawing.strip().savefig(picture, dpi=DPI)
    figure, writer = Figure(figsize=drawing.frame_size), PillowWriter(fps=PACE)
    rounds = drawing.played.rounds
    with writer.saving(figure, str(animation), DPI):
        for number in range(rounds):
            figure.clear()
            drawing.frame(figure, number)
            for _ in range(HOLD if number == rounds - 1 else 1):  # equal frames become one that is shown longer
                writer.grab_frame()
    return [picture, animation]
