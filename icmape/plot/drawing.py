"""Drawings of an episode: texts for the log, one picture of all rounds, and frames of the animation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from icmape.errors import UserError
from icmape.evaluation.single import Played
from icmape.problem import Problem
from icmape.problem.credible import credible_set

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 110
MOST_LISTED = 6  # answers of a credible set
PACE = 1  # frames a second
HOLD = 4  # frames for which the last one is shown


class Ground(NamedTuple):
    """The map of an episode: rows and columns of cells, counted row by row."""

    rows: int
    columns: int
    cells: list[int]  # of the hypotheses; other cells are not part of the map
    truths: list[tuple[int, str]]  # hidden cells and their labels
    shows: str  # meaning of the posterior
    reading: str  # meaning of a reading
    ratio: float = 1.0  # a cell's height by its width
    faintest: float = 0.0  # lower end of a logarithmic colour scale; 0: linear
    reach: int = 1  # side of an agent's window, in cells
    walks: bool = False  # whether agents move on the map
    region: dict[str, Any] | None = None  # outlines and towns, of a map of the earth
    home: str = ""  # the land in it that the question is about
    extent: list[float] | None = None  # south, north, west and east of what must be seen


class Drawing(ABC):
    """An episode as texts and pictures. Problems may have a subclass of their own (see `drawings`)."""

    played: Played

    def __init__(self, played: Played):
        self.played = played

    # -- texts

    def title(self, number: int) -> str:
        """Title of a round: confidence, and in the last round the verdict."""
        text = f"{after_rounds(number)}: p = {probability(self.played.confidence[number])}"
        return f"{text}, {verdict(self.played)}" if self.is_last(number) else text

    def is_last(self, number: int) -> bool:
        """Whether a round is the last one."""
        return number == self.played.rounds - 1

    def action(self, action: int) -> str:
        """Name of an action."""
        return self.played.problem.action_name(action)

    def doing(self, action: int) -> str:
        """What an agent does with an action, such as "go to 39.4N 77.4W"."""
        verb = self.played.problem.display.verb
        return f"{verb[:1].lower()}{verb[1:]} {self.action(action)}"

    def place(self, agent: int, number: int) -> str:
        """Position of an agent in a round, if it has one."""
        return ""

    def seen(self, agent: int, number: int) -> str:
        """Last observation of an agent when it decides in a round, as a short text."""
        leaves = jax.tree.leaves(self.played.episode.observations)
        single = len(leaves) == 1 and leaves[0].ndim == 2
        return f"{leaves[0][number, agent]:.3g}" if single and number > 0 else ""

    def answer(self, decision: Any) -> str:
        """Name of a hypothesis."""
        return self.played.problem.answer_name(decision)

    def choice(self, agent: int, number: int) -> str:
        """Choice of an agent in a round."""
        action = int(self.played.episode.actions[number, agent])
        return "STOP" if action == self.played.problem.actions else self.action(action)

    def short(self, action: int) -> str:
        """Short name of an action, for a table cell."""
        return self.action(action)[:4]

    def mark(self, agent: int, number: int) -> str:
        """Observation after an agent's action in a round, in a few characters; only for rounds before the stop."""
        after = self.seen(agent, number + 1)
        return after if len(after) <= 3 else ""

    def part(self, index: int) -> str:
        """Name of a part of the answer."""
        return f"part {index}"

    def value(self, index: int) -> str:
        """Name of a value of a part of the answer."""
        return str(index)

    def hidden(self, name: str) -> str:
        """Name for people of a part of the world that agents do not see."""
        return name.replace("_", " ")

    @property
    def slots(self) -> int | None:
        """Places of each action, if part k of the answer is how many agents action k serves at once."""
        return None

    # -- places, for problems on a map

    def ground(self) -> Ground | None:
        """The map, if there is one."""
        return None

    def spot(self, agent: int, number: int) -> tuple[int, int] | None:
        """Row and column of an agent when it decides in a round."""
        return None

    def readings_at(self, agent: int, number: int) -> list[tuple[int, float]]:
        """Cells that an agent read just before it decides in a round, with the readings."""
        return []

    def found(self, agent: int, number: int) -> list[int]:
        """Cells among them with a detection."""
        return []

    # -- pictures

    @abstractmethod
    def strip(self) -> Figure:
        """All rounds in one picture."""

    @property
    @abstractmethod
    def frame_size(self) -> tuple[float, float]:
        """Size of a frame, in inches."""

    @abstractmethod
    def frame(self, figure: Figure, number: int) -> None:
        """Draw the episode up to a round on an empty figure."""

    @classmethod
    def field(cls, problem: Problem, world: Any, key: Key[Array, ""]) -> Figure:
        """A picture of a world without a team, for problems that have one."""
        raise UserError(f"{type(problem).__name__} has no field to be drawn: --field is for problems on a grid")


def after_rounds(number: int) -> str:
    """What was played when a round is decided: rounds of readings count from 1, and the stop is none."""
    return f"after round {number}" if number else "before round 1"


def verdict(played: Played) -> str:
    """Whether the answer is right."""
    return "right" if bool(played.correct[-1]) else "wrong"


def reason(played: Played) -> str:
    """Why the episode ended."""
    names = [str(agent + 1) for agent in played.stopped]
    if played.forced:
        return "the horizon ended it"
    if played.stop_rule == "learned":
        word = f"{played.problem.display.agent}{'s' * (len(names) > 1)}"
        return f"{word} {', '.join(names)} stopped"
    return {"threshold": "the posterior was sure enough", "length": "the agreed rounds were over"}[played.stop_rule]


def ending(drawing: Drawing) -> str:
    """Why the episode ended, and whether the answer is right."""
    played = drawing.played
    truth = drawing.answer(played.episode.hypothesis)
    answer, sure = drawing.answer(played.decisions[-1]), probability(played.confidence[-1])
    return (
        f"{reason(played)} {after_rounds(played.rounds - 1)} (τ = {played.rounds}); answer {answer} with p = {sure}, "
        f"truth {truth}: {verdict(played)}{credible(drawing)}"
    )


def credible(drawing: Drawing) -> str:
    """The credible set as text, if answers can be listed; long sets are shortened."""
    played = drawing.played
    try:
        region = credible_set(played.problem.hypotheses, played.final)
    except UserError:
        return ""
    listed = "; ".join(drawing.answer(answer) for answer in region.answers[:MOST_LISTED])
    more = f" and {len(region.answers) - MOST_LISTED} more" if len(region.answers) > MOST_LISTED else ""
    return f"\n{region.level:.0%} credible set: {listed}{more}"


def probability(value: float | np.floating) -> str:
    """A probability with two digits, or one significant digit if it is below 0.01."""
    return f"{value:.2f}" if value >= 0.01 else f"{value:.1g}"


def write_episode(drawing: Drawing, folder: Path) -> list[Path]:
    """Write episode.png, and episode.gif with a frame for every round."""
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
