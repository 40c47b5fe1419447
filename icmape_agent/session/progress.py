"""The agents of a session, each as far as its own entries go."""

from dataclasses import dataclass, field

from icmape_agent.errors import UserError
from icmape_agent.session.crew import STOP, Actor, Crew, see
from icmape_agent.session.journal import Entry
from icmape_agent.session.records import AgentRecord
from icmape_agent.session.refusal import Refusal


@dataclass
class Progress:
    """An agent and what it saw so far."""

    actor: Actor
    corrections: int  # of its history, when it was begun
    played: int = 0  # rounds
    refused: set[int] = field(default_factory=set)  # rounds whose action was not allowed


class Agents:
    """Agents after their own entries. They are built when they are needed, and again when their history changed."""

    def __init__(self, crew: Crew):
        self.crew = crew
        self._known: dict[int, Progress] = {}

    def act(self, agent: int, record: AgentRecord) -> int:
        """The next action of an agent, or `STOP`."""
        if record.open_round >= self.crew.gate.sizes.horizon - 1:
            return STOP
        action = int(self.advanced(agent, record).actor.act())
        if action == STOP:
            del self._known[agent]  # an agent that stopped takes no more readings
        return action

    def refused(self, agent: int, record: AgentRecord) -> set[int]:
        """Rounds of an agent whose action was not allowed to it."""
        return self.advanced(agent, record).refused

    def advanced(self, agent: int, record: AgentRecord) -> Progress:
        """An agent after the rounds before its first open one."""
        known = self._known.pop(agent, None)
        if known is None or known.corrections != record.corrections:
            first = None if record.first is None else record.first["reading"]
            known = Progress(self.crew.team.agent(agent, first), record.corrections)
        for number, entry in enumerate(record.history[known.played :], start=known.played):
            if not see(known.actor, entry, self.crew.takes_missing):
                known.refused.add(number)
            known.played = number + 1
        self._known[agent] = known
        return known

    def try_next(self, agent: int, record: AgentRecord, entry: Entry) -> None:
        """Give an agent a reading of its first open round that is not recorded yet; `Refusal` if it cannot be."""
        known = self.advanced(agent, record)
        try:
            known.actor.see(entry["action"], entry["reading"])
        except UserError as error:
            raise Refusal("refused", str(error)) from error
        finally:
            del self._known[agent]  # until the reading is recorded, it is not known whether the agent saw it
        known.played += 1
        self._pending = agent, known

    def recorded(self) -> None:
        """The reading that was tried is in the journal."""
        agent, known = self._pending
        self._known[agent] = known
