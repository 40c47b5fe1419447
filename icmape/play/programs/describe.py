"""The program of a team, as its file holds it: functions, sizes, the layout and range of readings, names."""

import json
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from icmape.play.missing import infers_missed, inner_agents, says_missing, takes_missed
from icmape.play.programs.functions import CannotTrace, agent_functions, inference_functions
from icmape.play.readings import Gate
from icmape.play.stop import FixedLength, Threshold
from icmape.play.team import Team
from icmape.problem import Categorical, Factored, HypothesisSpace, Problem, TopK
from icmape_agent.answers import all_answers, number_of_answers
from icmape_agent.description import INTERACT, MISSES, PARTS, read_description
from icmape_agent.display import PLAIN, check_display, describe_display
from icmape_agent.files import VERSION
from icmape_agent.ranges import Part

MOST_NAMES = 1000  # of answers, or of actions, that a file holds
MOST_BYTES = 2**23  # of constants
KINDS: dict[type[HypothesisSpace], str] = {Categorical: "categorical", Factored: "factored", TopK: "topk"}


class Program(NamedTuple):
    """A team's program, and the constants that it reads beside the team's tensors."""

    described: dict[str, Any]
    tensors: dict[str, np.ndarray]

    @property
    def text(self) -> str:
        """The description as it stands in a file."""
        return json.dumps(self.described, separators=(",", ":"), ensure_ascii=False)


def team_program(team: Team, named: Mapping[str, Any]) -> Program:
    """The program of a team; `named` are its tensors by their names in its file."""
    tensors: dict[str, np.ndarray] = {}
    functions: dict[str, Any] = {}
    missing: dict[str, str] = {}
    misses: list[str] = []
    for part in PARTS:
        for marked in _kinds(team, part):
            try:
                functions |= TRACED[part](team, dict(named), tensors, marked)
            except CannotTrace as error:
                missing.setdefault(part, str(error))
            except Exception as error:  # code of one's own may raise anything: the file is written without this part
                said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
                missing.setdefault(part, f"it could not be traced ({said})")
            else:
                missing.pop(part, None)
                misses += [part] * marked
                break
        else:
            missing.setdefault(part, "its readings may be missing, and it needs every one")
    tensors = {name: tensors[name] for name in sorted(_read(functions)) if name in tensors}
    if sum(tensor.nbytes for tensor in tensors.values()) > MOST_BYTES:
        missing = dict.fromkeys(("agent", "inference"), f"its constants take more than {MOST_BYTES:,} bytes")
        functions, tensors = {}, {}
        misses = []
    about = {**describe(team), MISSES: misses}
    program = Program({**about, "functions": functions, "missing": missing}, tensors)
    try:
        read_description(json.loads(program.text), {name: np.asarray(x) for name, x in named.items()} | tensors)
    except ValueError as error:  # such as one that is too large
        reasons = dict.fromkeys(("agent", "inference"), str(error))
        return Program({**about, MISSES: [], "functions": {}, "missing": reasons}, {})
    return program


TRACED = {"agent": agent_functions, "inference": inference_functions}


def _kinds(team: Team, part: str) -> list[bool]:
    """How to trace a part: with missing readings, and else without, if its problem says nothing of them."""
    takes = takes_missed(team.policy) if part == "agent" else infers_missed(team.problem, team.inference)
    with_marks = [True] * (takes and not inner_agents(team.problem))
    return with_marks + [False] * (not says_missing(team.problem))


def _read(functions: dict[str, Any]) -> set[str]:
    """Names of the tensors that functions read."""
    every = (entry for function in functions.values() for entry in function["operations"])
    return {params["name"] for name, _, params in every if name == "tensor"}


def describe(team: Team) -> dict[str, Any]:
    """All but the functions."""
    problem, stop = team.problem, team.stop
    gate = Gate(problem)
    level = {FixedLength: "rounds", Threshold: "level"}.get(type(stop))
    return {
        "version": VERSION,
        "problem": gate.title,
        "sizes": gate.sizes._asdict(),
        "parts": [_part(part) for part in gate.parts],
        "layout": _layout(gate.layout, len(gate.parts)),
        "first": bool(problem.shows_first),
        "masked": bool(problem.has_action_mask),
        INTERACT: bool(problem.agents_interact),
        "stop": {"kind": stop.kind} | ({"level": getattr(stop, level)} if level else {}),
        "answers": _answers(team),
        "actions": _action_names(problem),
        "display": described_display(problem, gate),
    }


def described_display(problem: Problem, gate: Gate) -> dict[str, Any]:
    """How people see actions and readings; plainly, if that of the problem does not fit."""
    shapes, scores = [part.shape for part in gate.parts], prod(problem.hypotheses.shape)
    try:
        return check_display(describe_display(problem.display), gate.sizes, shapes, scores)
    except Exception:  # code of one's own may raise anything; `check_problem` reports it before training
        return PLAIN


def _part(part: Part) -> dict[str, Any]:
    limits = {name: _shortest(getattr(part.limits, name)) for name in ("low", "high", "whole")}
    return {"name": part.name, "type": part.dtype.name, "shape": list(part.shape), **limits}


def _shortest(limits: np.ndarray) -> Any:
    """One number for all, one an agent, or one for each."""
    if (limits == limits.flat[0]).all():
        return limits.flat[0].item()
    rows = limits.reshape(len(limits), -1)
    return (rows[:, 0] if (rows == rows[:, :1]).all() else limits).tolist()


def _layout(layout: Any, count: int) -> Any:
    if isinstance(layout, dict):
        return {name: _layout(part, count) for name, part in layout.items()}
    if isinstance(layout, tuple):
        return [_layout(part, count) for part in layout]
    return list(range(count)) if callable(layout) else layout


def _action_names(problem: Problem) -> list[str] | None:
    if problem.actions > MOST_NAMES:
        return None
    return [problem.action_name(action) for action in range(problem.actions)]


def _answers(team: Team) -> dict[str, Any]:
    space = team.problem.hypotheses
    kind, shape = KINDS.get(type(space), "other"), tuple(space.shape)
    few = kind != "other" and number_of_answers(kind, shape) <= MOST_NAMES
    names = [team.problem.answer_name(answer) for answer in all_answers(kind, shape)] if few else None
    right = {"k": space.k} if isinstance(space, TopK) else {}
    return {"kind": kind, "shape": list(shape), "names": names, **right}
