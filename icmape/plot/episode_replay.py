"""An episode as plain values, for the replay on a page.

A scene has `rounds`, with the state of the whole team, and `views`, one list of rounds per agent, which hold only what
that agent itself knows when it decides in a round.
"""

import math
from typing import Any

import jax
import numpy as np

from icmape.evaluation.single import Played
from icmape.plot.drawing import Drawing, Ground, after_rounds, credible, ending, probability, reason, verdict
from icmape.plot.drawings import drawing_of
from icmape.plot.earth import around, extent, near_names
from icmape_agent.display import Places

MOST_VALUES = 12  # of a part of the answer, above which only the most probable are shown
MOST_PARTS = 12
SHOWN = 10  # of those
DIGITS = 3  # of probabilities and readings


def scene(played: Played, title: str) -> dict[str, Any]:
    """An episode as JSON values."""
    drawing = drawing_of(played)
    ground, problem = _ground(drawing), played.problem
    names = _names(drawing)
    return {
        "title": title,
        "agent": problem.display.agent,
        "slots": drawing.slots,
        "values": _values(drawing),
        "answers": names,
        "posterior": played.posterior,
        "target": digits(1 - played.delta),
        "truth": drawing.answer(played.episode.hypothesis) if names is None else _ringed(drawing),
        "reason": reason(played),
        "verdict": verdict(played),
        "credible": credible(drawing).strip() if names is None else "",
        "ending": f"{capital(ending(drawing))}.",
        "ground": None if ground is None else {**ground._asdict(), "bounds": _bounds(drawing)},
        "groups": [] if ground is not None else _groups(drawing),
        "actions": [] if ground is not None else [drawing.action(action) for action in range(problem.actions)],
        "rounds": [_round(drawing, number, names) for number in range(played.rounds)],
        "views": [
            [_view(drawing, agent, number, names) for number in range(played.rounds)] for agent in range(problem.agents)
        ],
    }


def _ground(drawing: Drawing) -> Ground | None:
    """The map; one of the earth with what is around it."""
    ground, actions = drawing.ground(), drawing.played.problem.display.actions
    if ground is None or not isinstance(actions, Places):
        return ground
    shown = around(actions)
    home = shown.home(actions.coordinates)
    return ground._replace(region=shown.to_dict(), home=home, extent=extent(actions, shown, home))


def _names(drawing: Drawing) -> list[str] | None:
    """Actions that are places on the earth, by the nearest town."""
    actions = drawing.played.problem.display.actions
    if drawing.ground() is None or not isinstance(actions, Places):
        return None
    return [words or drawing.action(action) for action, words in enumerate(near_names(actions))]


def _ringed(drawing: Drawing) -> str:
    """The true places by their sign on the map."""
    count = np.atleast_1d(drawing.played.episode.hypothesis).size
    return f"any of the {count} ringed cells" if count > 1 else "the ringed cell"


def _bounds(drawing: Drawing) -> list[float] | None:
    actions = drawing.played.problem.display.actions
    return list(actions.bounds) if isinstance(actions, Places) else None


def _values(drawing: Drawing) -> list[str] | None:
    """Names of the two values of a reading, if a reading is one of two, the smaller first."""
    readings = drawing.played.problem.display.readings
    few = len(readings) == 1 and len(readings[0].values) == 2
    single = [leaf.ndim for leaf in jax.tree.leaves(drawing.played.episode.observations)] == [2]
    return list(readings[0].values) if few and single else None


def _value(drawing: Drawing, agent: int, number: int) -> int | None:
    """The last reading of an agent when it decides in a round, if a reading is one of two values."""
    if number == 0 or _values(drawing) is None:
        return None
    (leaf,) = jax.tree.leaves(drawing.played.episode.observations)
    return int(leaf[number, agent])


def digits(value: float | np.floating) -> float | None:
    """A rounded number; none if it is not finite."""
    return float(f"{float(value):.{DIGITS}g}") if math.isfinite(value) else None


def _round(drawing: Drawing, number: int, names: list[str] | None) -> dict[str, Any]:
    """Posterior and answer from all agents' data when a round is decided."""
    played = drawing.played
    sure, decided = probability(played.confidence[number]), played.decisions[number]
    answer = drawing.answer(decided) if names is None else names[int(decided)]
    sentences = [_agent_sentence(drawing, agent, number) for agent in range(played.problem.agents)]
    said = "Answer" if drawing.is_last(number) else "Answer so far"
    return {
        "confidence": digits(played.confidence[number]),
        "sure": sure,
        "answer": answer,
        "right": bool(played.correct[number]),
        "decided": np.atleast_1d(decided).tolist(),
        "posterior": _posterior(drawing, number),
        "words": f"{capital(after_rounds(number))}. {' '.join(sentences)} {said}: {answer}, p = {sure}.",
    }


def _view(drawing: Drawing, agent: int, number: int, names: list[str] | None) -> dict[str, Any]:
    """New information of one agent in a round, and its choice."""
    action = int(drawing.played.episode.actions[number, agent])
    stops = action == drawing.played.problem.actions
    return {
        "place": _place(drawing, agent, number, names),
        "spot": drawing.spot(agent, number),
        "seen": drawing.seen(agent, number),
        "mark": drawing.mark(agent, number - 1) if number > 0 else "",
        "value": _value(drawing, agent, number),
        "readings": [[cell, digits(value)] for cell, value in drawing.readings_at(agent, number)],
        "found": drawing.found(agent, number),
        "choice": drawing.choice(agent, number),
        "does": _does(drawing, agent, number),
        "short": "stop" if stops else drawing.short(action),
        "action": None if stops else action,
        "stops": stops,
        "next": "" if stops else drawing.doing(action) if names is None else names[action],
        "forced": stops and _does(drawing, agent, number) != "chooses STOP",
        "words": f"{capital(after_rounds(number))}. {_agent_sentence(drawing, agent, number)}",
    }


def _place(drawing: Drawing, agent: int, number: int, names: list[str] | None) -> str:
    """Where an agent is; on the earth by the nearest town."""
    if names is None or number == 0:
        return drawing.place(agent, number)
    return names[int(drawing.played.episode.actions[number - 1, agent])]


def _agent_sentence(drawing: Drawing, agent: int, number: int) -> str:
    """A sentence about an agent in a round."""
    place, seen = drawing.place(agent, number), drawing.seen(agent, number)
    place_text, seen_text = f", at {place}," if place else "", f" last saw: {seen};" if seen else ""
    name = drawing.played.problem.display.agent.capitalize()
    return f"{name} {agent + 1}{place_text}{seen_text} {_does(drawing, agent, number)}."


def _does(drawing: Drawing, agent: int, number: int) -> str:
    """Choice of an agent; in the last round it may not take effect, or be forced."""
    played, choice = drawing.played, drawing.choice(agent, number)
    if number < played.rounds - 1:
        return f"chooses {choice}"
    if agent not in played.stopped:
        return f"would have chosen {choice}"
    return "chooses STOP" if played.stop_rule == "learned" and not played.forced else "is made to stop"


def capital(words: str) -> str:
    """Words that begin a sentence."""
    return words[:1].upper() + words[1:]


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
