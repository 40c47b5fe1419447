"""An episode as plain values, for the replay on a page.

A scene has `rounds`, with the state of the whole team, and `views`, one list of rounds per agent, which hold only what
that agent itself knows when it decides in a round.
"""

import math
from typing import Any

import numpy as np

from icmape.evaluation.single import Played
from icmape.plot.drawing import Drawing, ending, probability, reason, verdict
from icmape.plot.drawings import drawing_of

MOST_VALUES = 12  # of a part of the answer, above which only the most probable are shown
MOST_PARTS = 12
SHOWN = 10  # of those
DIGITS = 3  # of probabilities and readings


def scene(played: Played, title: str) -> dict[str, Any]:
    """An episode as JSON values."""
    drawing = drawing_of(played)
    ground, problem = drawing.ground(), played.problem
    return {
        "title": title,
        "posterior": played.posterior,
        "target": digits(1 - played.delta),
        "truth": drawing.answer(played.episode.hypothesis),
        "reason": reason(played),
        "verdict": verdict(played),
        "ending": _sentence(ending(drawing)),
        "ground": None if ground is None else ground._asdict(),
        "groups": [] if ground is not None else _groups(drawing),
        "actions": [] if ground is not None else [drawing.action(action) for action in range(problem.actions)],
        "rounds": [_round(drawing, number) for number in range(played.rounds)],
        "views": [
            [_view(drawing, agent, number) for number in range(played.rounds)] for agent in range(problem.agents)
        ],
    }


def digits(value: float | np.floating) -> float | None:
    """A rounded number; none if it is not finite."""
    return float(f"{float(value):.{DIGITS}g}") if math.isfinite(value) else None


def _round(drawing: Drawing, number: int) -> dict[str, Any]:
    """Posterior and answer from all agents' data when a round is decided."""
    played = drawing.played
    sure, answer = probability(played.confidence[number]), drawing.answer(played.decisions[number])
    sentences = [_agent_sentence(drawing, agent, number) for agent in range(played.problem.agents)]
    return {
        "confidence": digits(played.confidence[number]),
        "sure": sure,
        "answer": answer,
        "right": bool(played.correct[number]),
        "decided": np.atleast_1d(played.decisions[number]).tolist(),
        "posterior": _posterior(drawing, number),
        "words": f"Round {number}. {' '.join(sentences)} Answer by now: {answer}, p = {sure}.",
    }


def _view(drawing: Drawing, agent: int, number: int) -> dict[str, Any]:
    """New information of one agent in a round, and its choice."""
    action = int(drawing.played.episode.actions[number, agent])
    stops = action == drawing.played.problem.actions
    return {
        "place": drawing.place(agent, number),
        "spot": drawing.spot(agent, number),
        "seen": drawing.seen(agent, number),
        "mark": drawing.mark(agent, number - 1) if number > 0 else "",
        "readings": [[cell, digits(value)] for cell, value in drawing.readings_at(agent, number)],
        "found": drawing.found(agent, number),
        "choice": drawing.choice(agent, number),
        "does": _does(drawing, agent, number),
        "short": "stop" if stops else drawing.short(action),
        "action": None if stops else action,
        "stops": stops,
        "words": f"Round {number}. {_agent_sentence(drawing, agent, number)}",
    }


def _agent_sentence(drawing: Drawing, agent: int, number: int) -> str:
    """A sentence about an agent in a round."""
    place, seen = drawing.place(agent, number), drawing.seen(agent, number)
    place_text, seen_text = f", at {place}," if place else "", f" last saw: {seen};" if seen else ""
    return f"Agent {agent + 1}{place_text}{seen_text} {_does(drawing, agent, number)}."


def _does(drawing: Drawing, agent: int, number: int) -> str:
    """Choice of an agent; in the last round it may not take effect, or be forced."""
    played, choice = drawing.played, drawing.choice(agent, number)
    if number < played.rounds - 1:
        return f"chooses {choice}"
    if agent not in played.stopped:
        return f"would have chosen {choice}"
    return "chooses STOP" if played.stop_rule == "learned" and not played.forced else "is made to stop"


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."


# -- the posterior: a value for every cell of a map, or bars in groups


def _groups(drawing: Drawing) -> list[dict[str, Any]]:
    """Parts of the answer with the names of their values, and which are true; no names where there are too many."""
    parts, truths = _parts(drawing), np.atleast_1d(drawing.played.episode.hypothesis)
    single = drawing.played.probabilities.ndim == 2
    return [
        {
            "name": "answer" if single else drawing.part(index),
            "values": [drawing.value(value) for value in range(parts.shape[2])] if _few(parts) else None,
            "truths": (truths if single else truths[index : index + 1]).tolist(),
        }
        for index in range(min(parts.shape[1], MOST_PARTS))
    ]


def _posterior(drawing: Drawing, number: int) -> list[Any]:
    """Probabilities by cell of the ground, by group and value, or by group as the most probable values."""
    if drawing.ground() is not None:
        return [digits(value) for value in drawing.played.probabilities[number].ravel()]
    parts = _parts(drawing)
    rows = parts[number, :MOST_PARTS]
    if _few(parts):
        return [[digits(value) for value in row] for row in rows]
    first = np.argsort(-rows, axis=1, kind="stable")[:, :SHOWN]
    return [
        [[int(index), drawing.value(int(index)), digits(row[index])] for index in order]
        for row, order in zip(rows, first, strict=True)
    ]


def _parts(drawing: Drawing) -> np.ndarray:
    """Probabilities (rounds, parts of the answer, values)."""
    probabilities = drawing.played.probabilities
    return probabilities.reshape(len(probabilities), -1, probabilities.shape[-1])


def _few(parts: np.ndarray) -> bool:
    return parts.shape[2] <= MOST_VALUES
