"""What a journal says: the readings, misses and stop of every agent. Only the set of entries counts, not their order.

Of several entries for one agent and round, a reading beats a miss, and the first reading is the one that is kept.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from icmape_agent.errors import UserError
from icmape_agent.session.journal import Entry
from icmape_agent.session.schema import check


@dataclass
class AgentRecord:
    """The entries of one agent."""

    first: Entry | None = None  # its observation before round 0
    readings: dict[int, Entry] = field(default_factory=dict)
    misses: dict[int, Entry] = field(default_factory=dict)
    stop: Entry | None = None
    ids: dict[str, Entry] = field(default_factory=dict)
    open_round: int = 0
    """The first round without a reading or a miss."""
    corrections: int = 0
    """Readings that came after their round was given up: the agent's history is another one since."""

    def add(self, entry: Entry) -> None:
        """Add an entry of this agent."""
        kind, number = entry["type"], entry.get("round", -1)
        if "id" in entry:
            self.ids.setdefault(entry["id"], entry)
        if kind == "first" and self.first is None:
            self.first = entry
        elif kind == "stop" and self.stop is None:
            self.stop = entry
        elif kind == "missed" and number not in self.readings:
            self.misses.setdefault(number, entry)
        elif kind == "tell" and number not in self.readings:
            self.readings[number] = entry
            self.corrections += number in self.misses
        while self.open_round in self.readings or self.open_round in self.misses:
            self.open_round += 1

    @property
    def waiting(self) -> list[int]:
        """Rounds with an entry behind the first open round."""
        return sorted(number for number in {*self.readings, *self.misses} if number > self.open_round)

    @property
    def history(self) -> list[Entry]:
        """The rounds before the first open one, each a reading or a miss."""
        return [self.readings.get(number) or self.misses[number] for number in range(self.open_round)]


@dataclass
class Records:
    """The entries of all agents, and the stop."""

    agents: list[AgentRecord]
    ended: Entry | None = None  # the stop that no agent decided
    horizon: int = 0

    @classmethod
    def of(cls, header: Entry) -> "Records":
        """No entries yet."""
        return cls([AgentRecord() for _ in range(header["agents"])], None, header["horizon"])

    def add(self, entry: Entry, where: str) -> None:
        """Add an entry of the journal, after a check; `where` names its line."""
        check(entry, f"{entry.get('type')}_entry" if entry.get("type") in KINDS else "entry", where)
        agent = entry["agent"]
        if agent is not None and agent >= len(self.agents):
            raise UserError(f"{where}: there is no agent {agent}; restore the file from a copy")
        if agent is None:
            self.ended = self.ended or entry
        else:
            self.agents[agent].add(entry)

    @property
    def firsts(self) -> list[Any] | None:
        """The observations before round 0, where the problem has such."""
        return [agent.first["reading"] for agent in self.agents if agent.first is not None] or None

    @property
    def stops(self) -> list[Entry]:
        """All stops that were recorded."""
        return [stop for stop in (self.ended, *(agent.stop for agent in self.agents)) if stop is not None]

    @property
    def stopped(self) -> bool:
        """The public bit: somebody stopped."""
        return self.ended is not None or any(agent.stop is not None for agent in self.agents)

    @property
    def stop_round(self) -> int:
        """The earliest round in which somebody stopped; before any stop, the last round of the horizon."""
        return min((stop["round"] for stop in self.stops), default=self.horizon - 1)

    @property
    def last_round(self) -> int:
        """The furthest first open round of any agent."""
        return max(agent.open_round for agent in self.agents)


KINDS = ("tell", "first", "missed", "stop")


@dataclass(frozen=True)
class Counted:
    """The data that count in the answer, aligned by round."""

    rounds: list[int]
    """Rounds with every agent's reading."""
    partial: list[int]
    """Rounds that count though readings are missing."""
    actions: list[list[int | None]]
    """Of all these rounds in order. None where it is not known that the agent did anything."""
    readings: list[list[Any]]
    """None where a reading is missing."""
    missing: list[list[int]]
    """Pairs of agent and round before the stop whose reading is not there."""


Counts = Callable[[bool, bool], bool]
"""Whether a round counts: whether every agent's reading is there, and whether every agent told a reading or a miss."""


def counted(records: Records, refused: Sequence[Collection[int]], counts: Counts) -> Counted:
    """The rounds before the stop that count.

    This function alone says which readings count. Readings of rounds from the stop on never do, nor those in `refused`:
    rounds of every agent whose action was not allowed to it.
    """
    end = records.stop_round if records.stopped else min(records.last_round, records.horizon - 1)
    rows = [
        [_cell(agent, number, rounds) for agent, rounds in zip(records.agents, refused, strict=True)]
        for number in range(end)
    ]
    whole = [all(reading is not None for _, reading in row) for row in rows]
    used = [number for number in range(end) if counts(whole[number], _all_told(records, number))]
    return Counted(
        [number for number in used if whole[number]],
        [number for number in used if not whole[number]],
        [[action for action, _ in rows[number]] for number in used],
        [[reading for _, reading in rows[number]] for number in used],
        [[i, n] for n, row in enumerate(rows) for i, (_, reading) in enumerate(row) if reading is None],
    )


def _all_told(records: Records, number: int) -> bool:
    return all(number in agent.readings or number in agent.misses for agent in records.agents)


def _cell(agent: AgentRecord, number: int, refused: Collection[int]) -> tuple[int | None, Any]:
    """What an agent did in a round and saw; None for what is not known."""
    if number in refused:
        return None, None
    entry = agent.readings.get(number) or agent.misses.get(number) or {}
    return entry.get("action"), entry.get("reading")
