"""Plays stored episodes with the agents that need NumPy only."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from icmape.export.compare import Answering, Runner
from icmape.export.episodes import Played
from icmape.play.programs.describe import Program
from icmape.play.team import Team
from icmape.play.team_files import team_tensors
from icmape_agent.description import Description, read_description
from icmape_agent.team import Team as LightTeam


def light_team(team: Team, program: Program) -> LightTeam:
    """The team as `icmape_agent.load` reads it from its file."""
    tensors = {name: np.asarray(leaf) for name, leaf in team_tensors(team).items()}
    return LightTeam(read_description(json.loads(program.text), tensors | program.tensors), team.delta)


def light_runner(team: Team, program: Program) -> Runner:
    """Plays episodes."""
    described = light_team(team, program).described

    def run(batch: list[Played]) -> Iterable[Answering]:
        for episode in batch:
            yield play_agents(described, episode), play_inference(described, episode)

    return run


def play_agents(described: Description, episode: Played) -> np.ndarray | None:
    """Scores of all agents in all rounds."""
    if "agent" in described.missing:
        return None
    found = []
    for number in range(described.gate.sizes.agents):
        agent = np.asarray(number, np.int32)
        move = described.functions["move"].given(agent)
        outputs = described.functions["open"](agent, *(part[0, number] for part in episode.observations))
        rows = [outputs[-3]]
        for t, actions in enumerate(episode.actions, start=1):
            seen = (part[t, number] for part in episode.observations)
            marks = _marks(described, "agent", episode, (t - 1, number))
            outputs = move(np.int32(t), actions[number], *seen, *marks, *outputs[:-3])
            rows.append(outputs[-3])
        found.append(np.stack(rows))
    return np.stack(found, axis=1)


def play_inference(described: Description, episode: Played) -> np.ndarray | None:
    """The scores of the answer."""
    if "inference" in described.missing:
        return None
    state = described.functions["begin"](*(part[0] for part in episode.observations))
    for t, actions in enumerate(episode.actions, start=1):
        marks = _marks(described, "inference", episode, (t - 1,))
        state = described.functions["add"](actions, *(part[t] for part in episode.observations), *marks, *state)
    return np.asarray(described.functions["answer"](*state)[0])


def _marks(described: Description, part: str, episode: Played, place: tuple[int, ...]) -> tuple[Any, ...]:
    """Who acted and whose reading arrived, for a part that takes missing readings."""
    return (episode.acted[place], episode.arrived[place]) if part in described.misses else ()
