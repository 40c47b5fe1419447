"""Compares the scores of another runtime with those of JAX."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from icmape.errors import UserError
from icmape.export.episodes import Played, choices
from icmape.play.team import Team

TOLERANCE = 1e-5
"""Largest difference of scores, relative to the largest score of the same decision if that is above 1."""

Answering = tuple[np.ndarray | None, np.ndarray | None]
"""Scores of all agents in all rounds (None where none acts alone), and the scores of the answer (None without one)."""
Runner = Callable[[list[Played]], Iterable[Answering]]


@dataclass
class Agreement:
    """How far another runtime agrees with JAX."""

    episodes: int = 0
    decisions: int = 0
    differing_choices: int = 0  # of agents
    differing_answers: int = 0
    largest_difference: float = 0.0  # of scores, relative to the largest score of the same decision if above 1
    largest_absolute: float = 0.0
    largest_gap: float = 0.0  # between the two scores where a choice or an answer differs
    beyond: int = 0  # episodes with a score that differs by more than the tolerance

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return dict(vars(self))


def agreement(team: Team, episodes: Iterable[list[Played]], runner: Runner) -> Agreement:
    """Compare the choices and scores of a runtime with those of JAX, in batches of episodes."""
    found = Agreement()
    for batch in episodes:
        for episode, (scores, answer) in zip(batch, runner(batch), strict=True):
            found.episodes += 1
            before = found.beyond
            if scores is not None:
                _compare_choices(team, found, episode, scores)
            if answer is not None:
                _compare_answers(team, found, episode, answer)
            found.beyond = before + (found.beyond > before)
    return found


def check(found: Agreement, what: str) -> None:
    """Raise `UserError` unless scores agree to the tolerance, and choices differ only between such scores."""
    if found.beyond or found.largest_gap > TOLERANCE:
        raise UserError(
            f"{what} is not written: its scores differ from JAX's by up to {found.largest_difference:.2g} in "
            f"{found.episodes} episodes (allowed: {TOLERANCE:g}), and {found.differing_choices} choices differ"
        )


def _compare_choices(team: Team, found: Agreement, episode: Played, scores: np.ndarray) -> None:
    assert episode.scores is not None
    assert episode.offered is not None
    _compare_scores(found, episode.scores, scores)
    expected, given = (choices(team, each, episode.offered) for each in (episode.scores, scores))
    found.decisions += expected.size
    for at in zip(*np.nonzero(expected != given), strict=True):
        found.differing_choices += 1
        row = episode.scores[at]
        gap = abs(float(row[expected[at]]) - float(row[given[at]])) / float(_scale(row)[0])
        found.largest_gap = max(found.largest_gap, gap)


def _compare_answers(team: Team, found: Agreement, episode: Played, answer: np.ndarray) -> None:
    _compare_scores(found, episode.answer, answer)
    expected, given = episode.answer.argmax(-1), answer.argmax(-1)
    if np.any(expected != given):
        found.differing_answers += 1
        pair = (np.take_along_axis(episode.answer, np.asarray(at)[..., None], -1) for at in (expected, given))
        gaps = np.abs(np.subtract(*pair)) / _scale(episode.answer)
        found.largest_gap = max(found.largest_gap, float(gaps.max()))


def _compare_scores(found: Agreement, expected: np.ndarray, given: np.ndarray) -> None:
    same = (expected == given) | (np.isnan(expected) & np.isnan(given))  # infinite ones too
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(expected.astype(np.float64) - given))
    apart = np.where(np.isnan(apart), np.inf, apart)
    difference = float(np.max(apart / _scale(expected), initial=0.0))
    found.largest_difference = max(found.largest_difference, difference)
    found.largest_absolute = max(found.largest_absolute, float(np.max(apart, initial=0.0)))
    found.beyond += difference > TOLERANCE


def _scale(scores: np.ndarray) -> np.ndarray:
    """The largest finite score of each decision, at least 1."""
    finite = np.where(np.isfinite(scores), np.abs(scores), 0.0)
    return np.maximum(finite.max(-1, keepdims=True), 1.0)
