"""What the agents, actions and readings of a problem are called."""

from icmape.play.missing import says_missing
from icmape.problem import Problem
from icmape.problem.ranges import observation_layout, observation_parts
from icmape.problem.unreliable import reliable
from icmape_agent.session.statistics import MOST, Words


def words_of(problem: Problem) -> Words:
    """The words of a problem for people; actions and agents without a name count from 1."""
    inner = reliable(problem.unwrapped)
    parts = observation_parts(inner.observation_range, observation_layout(inner))
    said = [(quantity.label, quantity.unit) for quantity in inner.display.readings] or [("", "")] * len(parts)
    labels = [(label or part.name or "reading", unit) for (label, unit), part in zip(said, parts, strict=True)]
    names = [inner.action_name(action) for action in range(inner.actions)] if inner.actions <= MOST else []
    plain = names == [str(number) for number in range(len(names))]
    actions = [f"action {number + 1}" for number in range(len(names))] if plain else names
    return Words(inner.display.agent, actions, labels, says_missing(problem))
