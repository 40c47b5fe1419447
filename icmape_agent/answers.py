"""The answer of a team from its posterior: decision, confidence, name, credible set."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from icmape_agent.errors import UserError
from icmape_agent.kinds import need, whole

LEVEL = 0.95
MOST_ANSWERS = 100_000  # that are enumerated


class CredibleSet(NamedTuple):
    """Answers as numbers of hypotheses, which count from 0; most probable first.

    For TopK the answers are cells. Their memberships are treated as independent.
    """

    answers: np.ndarray
    probability: float  # posterior probability of a right answer in the set; below the level if no set reaches it
    level: float


def credible_among(answers: np.ndarray, adds: np.ndarray, level: float) -> CredibleSet:
    """The credible set of ranked answers, each with the probability that it adds."""
    if not 0 < level < 1:
        raise UserError(f"a credible set's level lies between 0 and 1; given {level}")
    reached = np.cumsum(adds)
    count = min(int(np.searchsorted(reached, level)) + 1, len(answers))
    return CredibleSet(answers[:count], min(float(reached[count - 1]), 1.0), level)


Ranked = tuple[np.ndarray, np.ndarray]
"""Answers, most probable first, and the probability that each adds to a credible set."""


def ranked_categories(scores: np.ndarray) -> Ranked:
    """One of n answers."""
    probabilities = np.exp(_log_softmax(scores))
    order = np.argsort(-probabilities, kind="stable")
    return order, probabilities[order]


def ranked_combinations(scores: np.ndarray) -> Ranked:
    """Whole answers of several parts; the probability is a product over parts."""
    parts, values = scores.shape
    if values**parts > MOST_ANSWERS:
        raise UserError(f"{values}^{parts} answers are too many to be listed (at most {MOST_ANSWERS:,})")
    answers = np.indices((values,) * parts).reshape(parts, -1).T
    probabilities = np.exp(_log_softmax(scores)[np.arange(parts), answers].sum(axis=1))
    order = np.argsort(-probabilities, kind="stable")
    return answers[order], probabilities[order]


def ranked_cells(scores: np.ndarray) -> Ranked:
    """Cells of which several are right. Memberships are treated as independent."""
    probabilities = 1 / (1 + np.exp(-np.asarray(scores, np.float64)))
    order = np.argsort(-probabilities, kind="stable")
    none_before = np.concatenate([[1.0], np.cumprod(1 - probabilities[order])[:-1]])
    return order, probabilities[order] * none_before


def _log_softmax(scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, np.float64)
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


RANKED: dict[str, Callable[[np.ndarray], Ranked]] = {
    "categorical": ranked_categories,
    "factored": ranked_combinations,
    "topk": ranked_cells,
}


class Answers(NamedTuple):
    """What the answers of a team are: a kind of hypothesis space, and names."""

    kind: str  # "other": of a space that is not icmape's
    shape: tuple[int, ...]  # of the scores
    names: tuple[str, ...] | None  # of all answers, in order
    k: int | None = None  # of "topk": how many answers are right; None: the file does not say

    @classmethod
    def read(cls, described: dict[str, Any]) -> "Answers":
        """From a description. Raises ValueError if it is none."""
        known = {"kind", "shape", "names"}
        need(isinstance(described, dict) and known <= set(described) <= known | {"k"}, "answers cannot be read")
        kind, names = described["kind"], described["names"]
        need(kind in (*RANKED, "other"), f"unknown kind of answers {kind!r}")
        shape = tuple(whole(n, 1, MOST_ANSWERS, "a number of answers") for n in described["shape"])
        need(names is None or all(isinstance(name, str) for name in names), "names of answers must be texts")
        need(names is None or len(names) == number_of_answers(kind, shape), "each answer needs a name")
        k = described.get("k")  # files of version 0.13.1 and older have none
        need(k is None or kind == "topk", "only answers of which several are right have a k")
        right = None if k is None else whole(k, 1, prod(shape), "how many answers are right")
        return cls(kind, shape, None if names is None else tuple(names), right)

    @property
    def chance(self) -> str:
        """What the probability of an answer is the chance of, where more than one is right; else empty."""
        return chance_of_highest(self.k) if self.kind == "topk" else ""

    def name(self, decision: np.ndarray) -> str:
        """The name of a decision; its numbers, if names are not in the file."""
        if self.names is None:
            values = np.atleast_1d(decision).tolist()
            return ", ".join(map(str, values))
        sizes = (self.shape[1],) * self.shape[0] if self.kind == "factored" else self.shape
        return self.names[int(np.ravel_multi_index(tuple(np.atleast_1d(decision)), sizes))]


def chance_of_highest(k: int | None) -> str:
    """What the probability of a cell is, where the k highest are right; None: it is not known how many."""
    if k == 1:
        return "chance to be the highest"
    return "chance to be among the highest" if k is None else f"chance to be one of the {k} highest"


def sureness(confidence: float, chance: str) -> str:
    """The probability of an answer, and of what it is where more than one answer is right (`Answers.chance`)."""
    if not chance:
        return f"p = {confidence:.3f}"
    return f"{chance}: {'> 99.9' if 0.9995 < confidence < 1 else f'{100 * confidence:.1f}'} %"


def number_of_answers(kind: str, shape: tuple[int, ...]) -> int:
    """How many answers there are, in the order of `all_answers`."""
    return int(shape[1] ** shape[0]) if kind == "factored" else prod(shape)


def all_answers(kind: str, shape: tuple[int, ...]) -> list[Any]:
    """All answers, in the order of their names."""
    if kind == "factored":
        return [np.array(values) for values in itertools.product(range(shape[1]), repeat=shape[0])]
    return list(range(prod(shape)))


@dataclass(frozen=True, eq=False)
class Answer:
    """The conclusion of the inference from the data of all agents.

    `name` is the most probable answer in words; `decision` is the same as numbers of hypotheses, which count from 0.
    """

    probabilities: np.ndarray  # in the shape of the hypothesis space
    decision: np.ndarray  # numbers of the most probable hypothesis, from 0: [1 0] is "capacities 2, 1"
    name: str  # of the decision, in words
    confidence: float  # probability that it is right; where several answers are, that it is one of them
    scores: np.ndarray = field(repr=False)
    kind: str = field(repr=False)
    why: Callable[[], str] = field(repr=False)
    chance: str = ""  # what the confidence is the chance of, where more than one answer is right

    def __str__(self) -> str:
        """The decision and its probability, and of what it is where more than one answer is right."""
        return f"{self.name} ({sureness(self.confidence, self.chance)})"

    def credible_set(self, level: float = LEVEL) -> CredibleSet:
        """The smallest set of answers that contains a right one with this posterior probability.

        Its answers are numbers of hypotheses, which count from 0, as in `decision`.
        """
        if self.kind not in RANKED:
            raise UserError("the answers of this team cannot be listed without icmape: use icmape.load")
        return credible_among(*RANKED[self.kind](self.scores), level)

    @cached_property
    def reason(self) -> str:
        """Why the team stops after this data, or that it continues. Every agent decides from its own history."""
        return self.why()
