"""Evaluations in files, checked value by value: a file may come from anywhere."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from icmape.errors import UserError, printable
from icmape.evaluation.metrics import Evaluation
from icmape.imports import is_path

SHARES = ("accuracy", "accuracy_low", "accuracy_high", "forced", "ece", "confidence", "no_data_accuracy")
EXACT = ("exact", "misspecified", "none")
LARGEST = 1e15  # of anything counted
LONGEST = 200  # of a text


def number(content: Mapping[str, Any], key: str, low: int | float, high: int | float = LARGEST) -> float:
    """A finite number within bounds."""
    value = content[key]
    expected = f"a number of at least {low:g}" if high >= LARGEST else f"a number from {low:g} to {high:g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{key} must be {expected}; given {short(value)}")
    if not low <= value <= high:  # NaN is in no range
        raise UserError(f"{key} must be {expected}; given {short(value)}")
    return float(value)


def optional(content: Mapping[str, Any], key: str, low: int | float, high: int | float = LARGEST) -> float | None:
    """The same, if the file has it."""
    return None if content.get(key) is None else number(content, key, low, high)


def whole(content: Mapping[str, Any], key: str, low: int) -> int:
    """A whole number."""
    value = number(content, key, low)
    if value != math.floor(value):
        raise UserError(f"{key} must be a whole number; given {short(content[key])}")
    return int(value)


def text(content: Mapping[str, Any], key: str) -> str:
    """A text that is not blank, with control characters as escapes."""
    value = content[key]
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{key} must be a text; given {short(value)}")
    if len(value) > LONGEST:
        raise UserError(f"{key} has {len(value):,} letters; at most {LONGEST} are taken")
    return printable(value)


def short(value: Any) -> str:
    """A value in an error message."""
    try:
        shown = repr(value)
    except (RecursionError, ValueError):  # nested deeply; more digits than Python writes
        return f"a {type(value).__name__}"
    return shown if len(shown) <= 60 else shown[:57] + "..."


def described_problem(problem: Any) -> dict[str, Any]:
    """The description of a problem, as `icmape.problem.spec` writes it."""
    if not isinstance(problem, dict) or not set(problem) <= {"kind", "arguments", "centralized"}:
        raise UserError(f"problem must be a description with kind and arguments; given {short(problem)}")
    if not isinstance(problem.get("kind"), str) or not isinstance(problem.get("arguments"), dict):
        raise UserError(f"problem must have a kind, which is a text, and arguments; given {short(problem)}")
    if not problem["kind"].isidentifier() and not is_path(problem["kind"]):
        raise UserError(f"kind must be a problem's name or module:Class; given {short(problem['kind'])}")
    if not isinstance(problem.get("centralized", False), bool):
        raise UserError(f"centralized must be true or false; given {short(problem['centralized'])}")
    return problem


def read_evaluation(content: Any) -> Evaluation:
    """The metrics of one team, as `icmape evaluate --out` writes them."""
    if not isinstance(content, dict):
        raise UserError(f"expected the metrics of a team by name; given {short(content)}")
    needed = [f.name for f in dataclasses.fields(Evaluation) if f.default is dataclasses.MISSING]
    if missing := [name for name in needed if name not in content]:
        raise UserError(f"{', '.join(missing)} missing")
    shares = {name: number(content, name, 0.0, 1.0) for name in SHARES}
    if not shares["accuracy_low"] <= shares["accuracy"] <= shares["accuracy_high"]:
        raise UserError(f"accuracy is {shares['accuracy']:g}, outside its own interval")
    if content["exact"] not in EXACT:
        raise UserError(f"exact must be one of {', '.join(EXACT)}; given {short(content['exact'])}")
    delta = number(content, "delta", 0.0, 1.0)
    if delta in (0, 1):
        raise UserError(f"delta must lie strictly between 0 and 1; given {delta:g}")
    exact_episodes = None if content.get("exact_episodes") is None else whole(content, "exact_episodes", 0)
    return Evaluation(
        **shares,
        tau=number(content, "tau", 1.0),
        tau_error=number(content, "tau_error", 0.0),
        rounds=number(content, "rounds", 0.0),
        readings=number(content, "readings", 0.0),
        log_loss=_loss(content, "log_loss") or 0.0,
        exact=str(content["exact"]),
        exact_accuracy=optional(content, "exact_accuracy", 0.0, 1.0),
        exact_ece=optional(content, "exact_ece", 0.0, 1.0),
        exact_log_loss=_loss(content, "exact_log_loss"),
        episodes=whole(content, "episodes", 1),
        seed=whole(content, "seed", 0),
        delta=delta,
        exact_episodes=exact_episodes,
        own_log_loss=_loss(content, "own_log_loss"),
    )


def _loss(content: Mapping[str, Any], key: str) -> float | None:
    """A log loss, which is infinite if a true answer had probability 0."""
    return math.inf if content.get(key) == math.inf else optional(content, key, -LARGEST)


def read_card(content: Mapping[str, Any]) -> dict[str, Any]:
    """The provenance of a team, if the file has it, with the cost of its training checked."""
    card = content.get("provenance")
    if card is None:
        return {}
    if not isinstance(card, dict):
        raise UserError(f"provenance must hold values by name; given {short(card)}")
    for key in ("seconds", "environment_steps"):
        optional(card, key, 0.0)
    return card
