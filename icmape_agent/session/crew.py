"""What a session needs of a team, whichever program it acts with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from icmape_agent.display import PLAIN
from icmape_agent.errors import UserError
from icmape_agent.geography import answers_by_towns
from icmape_agent.readings import Gate
from icmape_agent.session.journal import Entry
from icmape_agent.session.records import Counted

STOP = -1
"""What `act` returns when an agent stops."""


class Actor(Protocol):
    """One agent that acts."""

    def act(self) -> int:
        """The next action, or `STOP`."""

    def see(self, action: Any, observation: Any) -> None:
        """One more round of its own."""

    def missed(self, action: Any = None) -> None:
        """A round whose reading does not come, of a team that takes misses."""


class Acting(Protocol):
    """A team: its agents, and the answer from the data of all. Readings may be nested lists of numbers."""

    def agent(self, index: int, first: Any = None) -> Any:
        """An `Actor` before round 0."""

    def posterior(self, actions: Any, observations: Any, first: Any = None) -> Any:
        """The answer, with `decision`, `name` and `confidence`."""


@dataclass(frozen=True)
class Crew:
    """A team in a session."""

    team: Acting
    gate: Gate
    """What its readings are. Every reading passes it before it is recorded."""
    identity: str
    """A hash of what it acts with: a session goes on with the same team only."""
    description: Mapping[str, Any]
    """JSON for the journal: at least the `kind` of its problem; with `arguments`, these must stay the same too."""
    action_name: Callable[[int], str]
    takes_missing: bool = False
    """Whether agents have `missed`, and `posterior` takes None for a reading that is missing and for the action where
    nothing was done."""
    interact: bool = True
    """Whether what an agent does changes the readings of others. Then a round counts only if every agent told a reading
    or a miss: where nothing was told, it is not known whether the agent acted."""
    chance: str = ""
    """What an answer's probability is the chance of, where more than one is right (`Answers.chance`)."""
    display: Mapping[str, Any] = field(default_factory=lambda: PLAIN)
    """How people see actions and answers (`icmape_agent.display`)."""

    def counts(self, whole: bool, told: bool) -> bool:
        """Whether the answer reads a round (`Counts`)."""
        return whole or (self.takes_missing and (told or not self.interact))

    @property
    def delta(self) -> float | None:
        """The error probability that the team was trained for, if it says so."""
        return getattr(self.team, "delta", None)

    def near(self, decision: Any) -> str:
        """Where an answer is, in the words of the crews' pages, if answers are places on the earth; else empty."""
        return self._towns[int(decision)] if self._towns else ""

    @cached_property
    def _towns(self) -> list[str]:
        return answers_by_towns(self.display)

    def answer(self, data: Counted, first: list[Any] | None) -> Any:
        """The team's answer from the readings that count."""
        return self.team.posterior(data.actions, data.readings, first)


def see(actor: Actor, entry: Entry, takes_missing: bool) -> bool:
    """Give an agent one round of its history, a reading or a miss. Returns whether the agent could have done this.

    An agent that takes no misses plays a round without a reading once more: it decides as before the round. A reading
    or a miss whose action was not allowed counts as a miss without an action.
    """
    try:
        if "reading" in entry:
            actor.see(entry["action"], entry["reading"])
        elif takes_missing:
            actor.missed(entry.get("action"))
    except UserError:
        if "action" in entry:
            see(actor, {}, takes_missing)
        return False
    return True


def plain(value: Any) -> Any:
    """JSON values of an array, a tuple or a number of any kind."""
    if isinstance(value, str | bool | int | float | None):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    raise UserError(f"a reading is made of numbers, lists and arrays; given a {type(value).__name__}")
