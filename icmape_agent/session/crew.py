"""What a session needs of a team, whichever program it acts with."""

import hashlib
import json
from collections.abc import Callable
from typing import Any, Protocol

from icmape_agent.errors import UserError
from icmape_agent.session.records import Counted

STOP = -1
"""What `act` returns when an agent stops."""


class Actor(Protocol):
    """One agent that acts. It may also have `missed()`, for a round whose reading does not come."""

    def act(self) -> Any:
        """The next action, or `STOP`."""

    def see(self, action: int, reading: Any) -> None:
        """One more round of its own."""


class Crew(Protocol):
    """A team in a session. Numbers and texts are plain, so that they can be written as JSON."""

    agents: int
    actions: int
    horizon: int
    shows_first: bool
    identity: str
    description: dict[str, Any]

    def agent(self, index: int, first: Any) -> Actor:
        """An agent before round 0; `first` is its first reading, or None."""

    def reading(self, agent: int, value: Any) -> Any:
        """A reading of this agent from JSON values, checked; UserError if it is none."""

    def answer(self, data: Counted, first: list[Any] | None) -> Any:
        """The team's answer from the readings that count, with `decision`, `name` and `confidence`."""

    def action_name(self, action: int) -> str:
        """The name of an action, for people."""


class PlainCrew:
    """A team with `agent(index, first)` and `posterior(actions, observations, first)`, and the sizes of its problem.

    Sizes and names are attributes of `team.problem`, or of the team itself. `check_reading(agent, value)` of the team,
    if it has one, returns a reading in the form that its agents see, or raises UserError.
    """

    def __init__(self, team: Any):
        self.team = team
        problem = getattr(team, "problem", team)
        self.agents, self.actions = int(problem.agents), int(problem.actions)
        self.horizon = int(problem.horizon)
        self.shows_first = bool(getattr(problem, "shows_first", False))
        self._named: Callable[[int], str] = getattr(problem, "action_name", str)
        self.description: dict[str, Any] = dict(getattr(team, "description", None) or {"kind": type(problem).__name__})
        self.identity = str(getattr(team, "identity", None) or self._identity())

    def _identity(self) -> str:
        sizes = [self.description, self.agents, self.actions, self.horizon]
        return hashlib.sha256(json.dumps(sizes, sort_keys=True).encode()).hexdigest()[:32]

    def agent(self, index: int, first: Any) -> Actor:
        """As the team's."""
        actor: Actor = self.team.agent(index, first)
        return actor

    def reading(self, agent: int, value: Any) -> Any:
        """As the team checks it; without a check, any value."""
        check = getattr(self.team, "check_reading", None)
        return value if check is None else check(agent, value)

    def answer(self, data: Counted, first: list[Any] | None) -> Any:
        """The team's posterior."""
        return self.team.posterior(data.actions, data.readings, first)

    def action_name(self, action: int) -> str:
        """As the problem's."""
        return str(self._named(action))


def play(actor: Actor, action: int, reading: Any) -> None:
    """Give an agent one round of its history; None is a reading that does not come.

    An agent without `missed()` plays such a round once more: it decides as before the round.
    """
    if reading is not None:
        actor.see(action, reading)
    elif missed := getattr(actor, "missed", None):
        missed()


def plain(value: Any) -> Any:
    """JSON values of an array, a tuple or a number of any kind."""
    if isinstance(value, str | bool | int | float | None):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    raise UserError(f"a reading is made of numbers, lists and arrays; given a {type(value).__name__}")
