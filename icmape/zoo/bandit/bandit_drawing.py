"""The capacity bandit, drawn."""

from icmape.plot.timeline import Timeline


class BanditDrawing(Timeline):
    """Arms, payoffs and capacities by name."""

    def short(self, action: int) -> str:
        """Its number."""
        return str(action + 1)

    def seen(self, agent: int, number: int) -> str:
        """Whether the last pull paid."""
        if number == 0:
            return ""
        return "paid" if self.played.episode.observations[number, agent] > 0 else "not paid"

    def mark(self, agent: int, number: int) -> str:
        """The same for the pull of a round."""
        return {"paid": "✓", "not paid": "–"}[self.seen(agent, number + 1)]

    @property
    def slots(self) -> int:
        """Places of an arm: the answer says how many it has."""
        return self.played.problem.agents

    @property
    def caption(self) -> str:
        """Pulls."""
        return "cells: the arm pulled, ✓ paid or – not; red: the true capacity"

    def hidden(self, name: str) -> str:
        """How often arms pay."""
        return {"means": "chance of pay by arm"}.get(name, super().hidden(name))

    def part(self, index: int) -> str:
        """An arm."""
        return f"arm {index + 1}"

    def value(self, index: int) -> str:
        """A capacity."""
        return str(index + 1)
