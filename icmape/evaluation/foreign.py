"""External results: a small JSON file, checked key by key.

{"name": "their method", "problem": "bandit-quick", "accuracy": 0.91, "tau": 5.8, "episodes": 10000}

`problem` is a preset's name, module:Class, or a description as `icmape evaluate --out` writes it.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from icmape.errors import UserError, nearest
from icmape.evaluation.evaluation_files import LARGEST, described_problem, number, short, text, whole
from icmape.evaluation.intervals import wilson_interval
from icmape.evaluation.metrics import Evaluation
from icmape.learning.presets import presets
from icmape.problem.entry import problem_classes, problem_name

NEEDED = ("name", "problem", "accuracy", "tau", "episodes")
OPTIONAL = ("delta", "seconds", "worlds", "stop_times", "correct")
UNKNOWN = math.nan  # values that the file does not contain
CLOSE = 0.006  # tolerance between a number and the mean of its list, for rounding to two digits


class Outcomes(NamedTuple):
    """Outcomes of every episode, and the name of their worlds."""

    worlds: str  # lists with equal names are of the same worlds in the same order
    stop_times: np.ndarray | None
    correct: np.ndarray | None


class Foreign(NamedTuple):
    """The content of a file with external results."""

    name: str
    problem: dict[str, Any]  # as `icmape.problem.spec` writes it
    delta: float | None
    seconds: float | None
    evaluation: Evaluation
    outcomes: Outcomes | None


def is_foreign(content: Any) -> bool:
    """Whether a JSON file holds external results."""
    return isinstance(content, dict) and "name" in content and "team" not in content and "teams" not in content


def read_foreign(content: dict[str, Any]) -> Foreign:
    """Check the content of a file. Errors name the key, the value and what was expected."""
    for key in content:
        if key not in NEEDED + OPTIONAL:
            raise UserError(f"unknown key {key!r}: {nearest(key, NEEDED + OPTIONAL)}")
    if missing := [key for key in NEEDED if key not in content]:
        raise UserError(f"{', '.join(missing)} missing: expected are {', '.join(NEEDED)}")
    name, episodes = text(content, "name"), whole(content, "episodes", 1)
    accuracy, tau = number(content, "accuracy", 0.0, 1.0), number(content, "tau", 1.0)
    delta = number(content, "delta", 0.0, 1.0) if "delta" in content else None
    if delta in (0, 1):
        raise UserError(f"delta must lie strictly between 0 and 1; given {delta:g}")
    seconds = number(content, "seconds", 0.0) if "seconds" in content else None
    outcomes = _outcomes(content, episodes)
    stops = None if outcomes is None else outcomes.stop_times
    error = UNKNOWN if stops is None else float(stops.std() / math.sqrt(len(stops)))
    evaluation = _evaluation(accuracy, tau, error, episodes, UNKNOWN if delta is None else delta)
    return Foreign(name, _problem(content["problem"]), delta, seconds, evaluation, outcomes)


def _outcomes(content: dict[str, Any], episodes: int) -> Outcomes | None:
    """Lists by episode, whose means must agree with the numbers."""
    worlds = content.get("worlds", "")
    if not isinstance(worlds, str):
        raise UserError(
            f"worlds must be a text, the same in all files whose lists are of the same worlds; given {short(worlds)}"
        )
    if not {"stop_times", "correct"} & set(content):
        return None
    lists = {key: _list(content, key, episodes) for key in ("stop_times", "correct")}
    for key, mean in (("stop_times", "tau"), ("correct", "accuracy")):
        values = lists[key]
        if values is not None and abs(values.mean() - content[mean]) > CLOSE:
            raise UserError(f"{mean} is {content[mean]}, but the mean of {key} is {values.mean():.4g}")
    return Outcomes(worlds, lists["stop_times"], lists["correct"])


def _list(content: dict[str, Any], key: str, episodes: int) -> np.ndarray | None:
    if key not in content:
        return None
    values, least = content[key], 1 if key == "stop_times" else 0
    expected = "rounds from 1 on" if least else "true and false (or 1 and 0)"
    if not isinstance(values, list) or len(values) != episodes:
        size = len(values) if isinstance(values, list) else short(values)
        raise UserError(f"{key} must be a list of {episodes:,} values, one an episode; given {size}")
    for index, value in enumerate(values):
        round_number = not isinstance(value, bool) and isinstance(value, int) and 1 <= value <= LARGEST
        fits = round_number if least else isinstance(value, int) and value in (0, 1)
        if not fits:
            raise UserError(f"{key} must hold {expected}; value {index} is {short(value)}")
    return np.asarray(values, np.float64)


def _problem(problem: Any) -> dict[str, Any]:
    """The description of a problem, as in files of this package."""
    if isinstance(problem, dict):
        return described_problem(problem)
    if not isinstance(problem, str):
        raise UserError(
            f"problem must be a preset's name, module:Class or a description of one; given {short(problem)}"
        )
    if problem in presets():
        chosen = presets()[problem]
        shared = {name: value for name, value in chosen.arguments.items() if name not in chosen.problem.LOCAL}
        return {"kind": problem_name(chosen.problem), "arguments": shared}
    if ":" in problem or problem in problem_classes():
        return {"kind": problem, "arguments": {}}
    raise UserError(f"problem {problem!r} is no preset: {nearest(problem, presets())} Of your own: module:Class")


def _evaluation(accuracy: float, tau: float, error: float, episodes: int, delta: float) -> Evaluation:
    low, high = wilson_interval(round(accuracy * episodes), episodes)
    return Evaluation(
        accuracy=accuracy,
        accuracy_low=low,
        accuracy_high=high,
        tau=tau,
        tau_error=error,
        rounds=tau - 1,
        readings=UNKNOWN,
        forced=UNKNOWN,
        ece=UNKNOWN,
        confidence=UNKNOWN,
        log_loss=UNKNOWN,
        no_data_accuracy=UNKNOWN,
        exact="none",
        exact_accuracy=None,
        exact_ece=None,
        exact_log_loss=None,
        episodes=episodes,
        seed=-1,
        delta=delta,
    )
