"""A team of this package in a session (`icmape_agent.session`)."""

import hashlib
import json
import os
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from icmape.errors import UserError
from icmape.play.answer import Answer
from icmape.play.policy import LocalPolicy
from icmape.play.stop import Threshold
from icmape.play.team import Agent, Team, _reading, empty_observation
from icmape.play.team_files import _describe, _named
from icmape.problem import spec
from icmape_agent.session import PlainCrew, Session, open_session
from icmape_agent.session.records import Counted


def session(team: Team, folder: str | os.PathLike[str], **options: Any) -> Session:
    """Start a session of a team in a folder, or go on with the one that is there (`open_session`)."""
    return open_session(TeamCrew(team), os.fspath(folder), **options)


class TeamCrew(PlainCrew):
    """A `Team` in a session. Readings are JSON values in the layout of the problem's observations."""

    team: Team

    def __init__(self, team: Team):
        if not isinstance(team.policy, LocalPolicy) or isinstance(team.stop, Threshold):
            raise UserError("this team acts or stops on everyone's data, so its agents cannot act alone in a session")
        super().__init__(_Described(team))
        self.team = team

    @cached_property
    def _layout(self) -> PyTree:
        return empty_observation(self.team.problem)

    def agent(self, index: int, first: Any) -> Agent:
        """As the team's."""
        return self.team.agent(index, first)

    def reading(self, agent: int, value: Any) -> PyTree:
        """A reading in the problem's layout and types. This function alone is the gate of sessions."""
        return jax.tree.map(np.asarray, _reading(self._layout, _in_layout(self._layout, value)))

    def answer(self, data: Counted, first: list[Any] | None) -> Answer:
        """The team's posterior."""
        if not data.actions:
            return self.team.posterior([], [], None if first is None else _stacked(first))
        rows = [_stacked([self.reading(i, value) for i, value in enumerate(row)]) for row in data.readings]
        return self.team.posterior(data.actions, _stacked(rows), None if first is None else _stacked(first))


class _Described:
    """A team with what the journal says of it."""

    def __init__(self, team: Team):
        self.problem = team.problem
        self.description = _description(team)
        self.identity = team_identity(team)


def team_identity(team: Team) -> str:
    """A hash of everything by which a team acts and answers; the same for a team in memory and in its file."""
    digest = hashlib.sha256(json.dumps([_description(team), _parts(team), team.delta], sort_keys=True).encode())
    for name, leaf in _named((team.policy, team.stop, team.inference)).items():
        array = np.asarray(leaf)
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode() + array.tobytes())
    return digest.hexdigest()[:32]


def _description(team: Team) -> dict[str, Any]:
    try:
        return spec.describe(team.problem, local=False)
    except UserError:  # an adapter that files cannot name
        return {"kind": repr(team)}


def _parts(team: Team) -> dict[str, Any]:
    try:
        return _describe(team)
    except UserError:  # a policy that files cannot hold
        return {"kind": repr(team), "policy": f"{type(team.policy).__module__}:{type(team.policy).__qualname__}"}


def _stacked(rows: list[PyTree]) -> PyTree:
    return jax.tree.map(lambda *parts: np.stack(parts), *rows)


def _in_layout(like: PyTree, value: Any) -> Any:
    """A reading whose JSON lists stand for the tuples of the layout."""
    if isinstance(like, dict) and isinstance(value, dict) and set(like) == set(value):
        return {name: _in_layout(part, value[name]) for name, part in like.items()}
    if not isinstance(like, tuple) or not isinstance(value, list | tuple) or len(value) != len(like):
        return value
    parts = [_in_layout(part, item) for part, item in zip(like, value, strict=True)]
    return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)
