"""A team of this package in a session (`icmape_agent.session`)."""

import os
from typing import Any

import numpy as np

from icmape.errors import UserError
from icmape.play.answer import chance_of
from icmape.play.missing import answers_missed
from icmape.play.policy import LocalPolicy
from icmape.play.programs.describe import described_display
from icmape.play.readings import Gate
from icmape.play.stop import FixedLength, Threshold
from icmape.play.team import Team
from icmape.play.team_files import _describe, team_tensors
from icmape.problem import spec
from icmape_agent.identity import identity_of
from icmape_agent.session import Crew, Session, open_session


def session(team: Team, folder: str | os.PathLike[str], **options: Any) -> Session:
    """Start a session of a team in a folder, or go on with the one that is there (`open_session`)."""
    return open_session(crew(team), os.fspath(folder), **options)


def crew(team: Team) -> Crew:
    """A team as a session knows it."""
    if not isinstance(team.policy, LocalPolicy) or isinstance(team.stop, Threshold):
        raise UserError("this team acts or stops on everyone's data, so its agents cannot act alone in a session")
    gate = Gate(team.problem)
    level = team.stop.rounds if isinstance(team.stop, FixedLength) else 0
    tensors = {name: np.asarray(leaf) for name, leaf in team_tensors(team).items()}
    identity = identity_of(gate, team.delta, team.stop.kind, level, tensors)
    takes_missing = answers_missed(team.problem, team.policy, team.inference)
    problem, space = team.problem, team.problem.hypotheses
    return Crew(
        team,
        gate,
        identity,
        _description(team),
        problem.action_name,
        takes_missing,
        interact=problem.agents_interact,
        chance=chance_of(space),
        display=described_display(problem, gate),
    )


def _description(team: Team) -> dict[str, Any]:
    """The problem and the parts, as a team file has them, where a file can hold them."""
    try:
        return {**spec.describe(team.problem, local=False), "parts": _describe(team)}
    except UserError:
        return {"kind": repr(team)}
