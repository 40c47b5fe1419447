"""A small team of plain Python for sessions: its agents choose and stop by their own readings, at once."""

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from icmape_agent.ranges import Part, Range
from icmape_agent.readings import Gate, Sizes
from icmape_agent.session import STOP, Crew


@dataclass(frozen=True)
class Coins:
    """Which coin lands heads most often? A reading is 1 for heads and 0 for tails."""

    agents: int = 6
    actions: int = 4
    horizon: int = 51
    lead: int = 8  # an agent stops once one coin showed so many more heads than tails

    def agent(self, index: int, first: Any = None) -> "CoinAgent":
        return CoinAgent(self, index)

    def action_name(self, action: int) -> str:
        return f"coin {action + 1}"

    def posterior(self, actions: Any, observations: Any, first: Any = None) -> "CoinAnswer":
        heads, tosses = [1] * self.actions, [2] * self.actions
        for taken, seen in zip(actions, observations, strict=True):
            for action, reading in zip(taken, seen, strict=True):
                tosses[action] += 1
                heads[action] += reading
        shares = [h / n for h, n in zip(heads, tosses, strict=True)]
        best = max(range(self.actions), key=shares.__getitem__)
        return CoinAnswer(best, self.action_name(best), shares[best] / sum(shares))


@dataclass(frozen=True)
class CoinAnswer:
    decision: int
    name: str
    confidence: float


@dataclass
class CoinAgent:
    """Its choice depends on its whole history in order, so that any change of the history shows."""

    team: Coins
    index: int
    history: list[tuple[int, int | None]] = field(default_factory=list)

    def act(self) -> int:
        ahead = [sum(1 if r else -1 for a, r in self.history if a == coin) for coin in range(self.team.actions)]
        if max(ahead) >= self.team.lead:
            return STOP
        return zlib.crc32(repr((self.index, self.history)).encode()) % self.team.actions

    def see(self, action: int, observation: Any) -> None:
        self.history.append((action, int(observation)))


def crew(team: Coins) -> Crew:
    """The team in a session."""
    joint = np.zeros(team.agents, int), np.ones(team.agents, int), np.ones(team.agents, bool)
    part = Part("", (), np.dtype(np.int8), Range(*joint))
    gate = Gate("Coins", Sizes(team.agents, team.actions, team.horizon), [part], 0, False)
    return Crew(team, gate, f"coins, lead {team.lead}", {"kind": "coins"}, team.action_name)


def toss(world: int, agent: int, number: int, action: int) -> int:
    """The reading of an agent in a round of a world: the coins differ."""
    drawn = zlib.crc32(repr((world, agent, number, action)).encode()) / 2**32
    return int(drawn < 0.3 + 0.15 * action)
