"""One malformed input, what is done with it, and what may come of it."""

import math
import traceback
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

import numpy as np

from icmape.errors import UserError

Judge = Callable[[Any], str | None]
"""Why it is wrong that an input was accepted with this result; None if it is right."""
REFUSED, HARMLESS = "refused", "harmless"
FAULTS = ("traceback", "hang", "wrong", "memory")
LONGEST_SENTENCE = 2000
"""Letters of an error on the command line."""


class Case(NamedTuple):
    """A malformed input."""

    given: Any
    judge: Judge


class Target(NamedTuple):
    """A reader of inputs, and the ways in which its inputs are malformed."""

    run: Callable[[Any], Any]
    mutations: Mapping[str, Callable[[Random], Case]]


class Exit(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    said: str


class Outcome(NamedTuple):
    """What came of an input: refused, harmless, or one of `FAULTS`."""

    kind: str
    mutation: str
    words: str
    """The error, or what is wrong."""


def make(target: Target, name: str, seed: int, number: int) -> tuple[str, Case]:
    """The mutation and the input of a number: the same ones whenever seed, target and number are the same."""
    random = Random(f"{seed} {name} {number}")
    mutations = list(target.mutations)
    mutation = mutations[number % len(mutations)]
    return mutation, target.mutations[mutation](random)


def attempt(target: Target, name: str, seed: int, number: int) -> Outcome:
    """Give an input to its reader. Errors that are no `UserError`, nor one of the file system, are faults."""
    mutation, case = make(target, name, seed, number)
    try:
        result = target.run(case.given)
    except (UserError, OSError) as error:
        return _refusal(mutation, str(error), math.inf)
    except MemoryError as error:
        return Outcome("memory", mutation, f"MemoryError {error}")
    except BaseException:
        return Outcome("traceback", mutation, traceback.format_exc()[-3000:])
    if isinstance(result, Exit) and result.code not in (0, 2):
        return Outcome("wrong", mutation, f"exit code {result.code}: {result.said[-500:]}")
    if isinstance(result, Exit) and result.code == 2:
        return _refusal(mutation, result.said, LONGEST_SENTENCE)
    wrong = case.judge(result)
    return Outcome(HARMLESS, mutation, "") if wrong is None else Outcome("wrong", mutation, wrong)


def _refusal(mutation: str, words: str, longest: float) -> Outcome:
    """A refusal says something, in a sentence that can be read."""
    if not words.strip() or len(words) > longest:
        return Outcome("wrong", mutation, f"refused in {len(words):,} letters: {words[:200]}")
    return Outcome(REFUSED, mutation, words)


def must_refuse(result: Any) -> str:
    """For inputs that nothing can be made of."""
    return f"accepted, though it had to be refused: {str(result)[:300]}"


def must_answer(result: Any) -> None:
    """For inputs of which something is made: the reader checks its own result."""


def same_as(original: Any) -> Judge:
    """For changes that may be harmless: what comes of the input is what came of the unchanged one."""

    def judge(result: Any) -> str | None:
        return None if equal(result, original) else f"accepted with another result: {str(result)[:300]}"

    return judge


def equal(one: Any, other: Any) -> bool:
    """Whether two results are the same to the bit; NaN equals NaN."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        one, other = np.asarray(one), np.asarray(other)
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other or (one != one and other != other))
