"""What a file says of a team beside its tensors, checked."""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from icmape_agent.answers import Answers
from icmape_agent.display import PLAIN, check_display
from icmape_agent.kinds import Kind, make_kind, need, whole
from icmape_agent.program import Function, read_functions
from icmape_agent.ranges import Part, Range
from icmape_agent.readings import Gate, Sizes

KEYS = {"version", "problem", "sizes", "parts", "layout", "first", "masked", "stop", "answers", "actions"}
MISSES = "misses"
"""The key of the parts that take missing readings. Files of version 0.12 and older do not have it: no part does."""
INTERACT = "interact"
"""The key that says whether what an agent does changes the readings of others. Files of version 0.13.1 and older do not
have it: it does, unless the problem is one of these."""
APART = {"Hotspot", "Signal"}
PARTS = ("agent", "inference")
MOST = 2**20
STOPS = ("learned", "length", "threshold")


class Description(NamedTuple):
    """A team as a light agent knows it."""

    gate: Gate
    masked: bool  # whether some actions may not be allowed
    stop: str  # "learned", "length" or "threshold"
    level: float  # rounds of a fixed length, or the threshold
    answers: Answers
    actions: tuple[str, ...] | None  # names
    display: dict[str, Any]  # how people see actions and readings (`icmape_agent.display`)
    functions: dict[str, Function]
    missing: dict[str, str]  # why there are no functions of "agent" or "inference"
    misses: frozenset[str] = frozenset()  # which of these take missing readings
    interact: bool = True  # whether what an agent does changes the readings of others


def read_description(described: dict[str, Any], tensors: Mapping[str, np.ndarray]) -> Description:
    """A team from its description. Raises ValueError (or KeyError, TypeError) if it is none."""
    known, later = KEYS | {"functions", "missing"}, {MISSES, INTERACT, "display"}  # older files have none
    need(known <= set(described) <= known | later, "it has other keys than this version knows")
    sizes = Sizes(**{name: whole(described["sizes"][name], 1, MOST, name) for name in Sizes._fields})
    parts = [_part(part, sizes.agents) for part in described["parts"]]
    layout = _layout(described["layout"], len(parts))
    interact = described.get(INTERACT, described["problem"] not in APART)
    flags = described["first"], described["masked"], interact
    need(all(type(flag) is bool for flag in flags), f"first, masked and {INTERACT} must be true or false")
    kind, level = described["stop"]["kind"], float(described["stop"].get("level", 0))
    need(kind in STOPS, f"unknown stop {kind!r}")
    names, missing = described["actions"], described["missing"]
    misses = described.get(MISSES, [])
    need(isinstance(misses, list) and all(part in PARTS for part in misses), "what takes missing readings")
    named = names is None or (len(names) == sizes.actions and all(isinstance(name, str) for name in names))
    need(named, "each action needs a name")
    need(all(part in PARTS and isinstance(why, str) for part, why in missing.items()), "what is missing")
    functions, answers = read_functions(described["functions"], tensors), Answers.read(described["answers"])
    _check(functions, missing, frozenset(misses), sizes, parts, answers)
    gate = Gate(str(described["problem"]), sizes, parts, layout, flags[0])
    display = check_display(described.get("display", PLAIN), sizes, [part.shape for part in parts], prod(answers.shape))
    actions, takes = None if names is None else tuple(names), frozenset(misses)
    about = gate, flags[1], kind, level, answers, actions, display, functions, dict(missing)
    return Description(*about, takes, interact)


def _part(described: dict[str, Any], agents: int) -> Part:
    kind = make_kind(described["type"], described["shape"])
    joint = (agents, *kind.shape)
    limits = (np.asarray(described[name], dtype) for name, dtype in (("low", float), ("high", float), ("whole", bool)))
    return Part(str(described["name"]), kind.shape, np.dtype(kind.type), Range(*(_over(x, joint) for x in limits)))


def _over(limits: np.ndarray, joint: tuple[int, ...]) -> np.ndarray:
    """One number for all, one an agent, or one for each."""
    per_agent = limits.ndim == 1 and len(limits) == joint[0]
    shaped = limits.reshape(-1, *(1 for _ in joint[1:])) if per_agent else limits
    return np.broadcast_to(shaped, joint)


def _layout(described: Any, count: int, depth: int = 0) -> Any:
    need(depth < 16, "the layout of readings is too deep")
    if described is None:
        return None
    if isinstance(described, dict):
        return {str(name): _layout(part, count, depth + 1) for name, part in described.items()}
    if isinstance(described, list):
        return tuple(_layout(part, count, depth + 1) for part in described)
    return whole(described, 0, count - 1, "a part of a reading")


def _check(
    functions: dict[str, Function],
    missing: dict[str, str],
    misses: frozenset[str],
    sizes: Sizes,
    parts: list[Part],
    answers: Answers,
) -> None:
    """Raise ValueError unless the functions take and give what they must."""
    number = Kind("int32", ())
    marks = [Kind("bool", ())] * 2 if "agent" in misses else []
    joint_marks = [Kind("bool", (sizes.agents,))] * 2 if "inference" in misses else []
    one = [Kind(part.dtype.name, part.shape) for part in parts]
    joint = [Kind(part.dtype.name, (sizes.agents, *part.shape)) for part in parts]
    mask = Kind("bool", (sizes.actions,))
    decided = [Kind("float32", (sizes.actions + 1,)), mask, mask]
    expected = {"agent": ("open", "move"), "inference": ("begin", "add", "answer")}
    for part, names in expected.items():
        need((part in missing) != all(name in functions for name in names), f"the functions of {part} are not whole")
    if "agent" not in missing:
        state = functions["open"].outputs[:-3]
        _signature(functions["open"], "open", [number, *one], [*state, *decided])
        _signature(functions["move"], "move", [number, number, number, *one, *marks, *state], [*state, *decided])
    if "inference" not in missing:
        state = functions["begin"].outputs
        _signature(functions["begin"], "begin", joint, state)
        taken = [Kind("int32", (sizes.agents,)), *joint, *joint_marks, *state]
        _signature(functions["add"], "add", taken, state)
        scores = Kind("float32", answers.shape)
        need(functions["answer"].inputs == state, "answer takes another state")
        need(functions["answer"].outputs[:1] == [scores], "answer gives other scores")
        need([len(k.shape) for k in functions["answer"].outputs[3:]] == [0], "answer gives no confidence")
    need(set(functions) <= {name for names in expected.values() for name in names}, "it has unknown functions")


def _signature(function: Function, name: str, inputs: list[Kind], outputs: list[Kind]) -> None:
    need(function.inputs == inputs and function.outputs == outputs, f"{name} takes or gives other values")
