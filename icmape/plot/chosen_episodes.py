"""Which episodes a report shows: chosen by rule, and the rule is said with each."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from icmape.evaluation.single import Played, play_one
from icmape.play.team import Team
from icmape.plot.drawing import Drawing
from icmape.plot.drawings import drawing_of

TRIED = 12  # right episodes of about median length, of which the first with a finding is shown


class Chosen(NamedTuple):
    """An episode, and why it is shown."""

    rule: str
    played: Played
    world: int

    @property
    def title(self) -> str:
        """The rule, the length and the world."""
        return f"{self.words} (world {self.world})"

    @property
    def words(self) -> str:
        """The rule and the length."""
        rounds = self.played.rounds - 1
        return f"{self.rule}, {rounds} round{'s' * (rounds != 1)}"


def chosen_episodes(team: Team, right: np.ndarray, stop: np.ndarray, seed: int, most: int) -> list[Chosen]:
    """A right episode of median length, a wrong one, the longest, and then the first worlds, at most `most`.

    `right` and `stop` are those of the episodes of an evaluation with this seed.
    """
    chosen: list[Chosen] = []
    for rule, worlds in _rules(right, stop):
        if len(chosen) == most:
            break
        left = [world for world in worlds if world not in {one.world for one in chosen}]
        if left:
            played, world = _first_finding(team, left, seed) if not chosen else (play_one(team, left[0], seed), left[0])
            chosen.append(Chosen(rule, played, world))
    return chosen


def _rules(right: np.ndarray, stop: np.ndarray) -> Iterator[tuple[str, list[int]]]:
    """Names of the rules with the worlds that fit, the best first."""
    right = np.asarray(right, bool)
    yield "Right, of median length", near_median(np.flatnonzero(right), stop)
    yield "Wrong, of median length", near_median(np.flatnonzero(~right), stop)
    yield "The longest", np.argsort(-stop, kind="stable").tolist()
    for world in range(len(stop)):
        yield "One of the first worlds", [world]


def near_median(worlds: np.ndarray, stop: np.ndarray) -> list[int]:
    """Worlds in the order of the difference of their length from the median; equal ones by number."""
    if not len(worlds):
        return []
    difference = np.abs(stop[worlds] - np.median(stop[worlds]))
    return worlds[np.argsort(difference, kind="stable")].tolist()


def _first_finding(team: Team, worlds: list[int], seed: int) -> tuple[Played, int]:
    """The first of a few episodes in which an agent found something; else, or where nothing can be found, the first."""
    first = play_one(team, worlds[0], seed)
    if type(drawing_of(first)).found is Drawing.found or _finds(first):
        return first, worlds[0]
    others = ((play_one(team, world, seed), world) for world in worlds[1:TRIED])
    return next((pair for pair in others if _finds(pair[0])), (first, worlds[0]))


def _finds(played: Played) -> bool:
    drawing = drawing_of(played)
    return any(
        drawing.found(agent, number) for agent in range(played.problem.agents) for number in range(played.rounds)
    )
