"""A problem with real readings: which of three places has the highest level? Sessions of it can be spoilt."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from icmape.evaluation.prior_check.recorded import Recorded, agent_parts
from icmape.networks import Inference
from icmape.play.episodes import play
from icmape.play.inference import NetworkInference
from icmape.play.open_loop import Schedule
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.problem import Categorical, Features, Problem
from icmape_agent.display import Display, Quantity
from icmape_agent.session.statistics import Sessions
from tests.support import drawn

Spoil = Callable[[np.ndarray], np.ndarray]
"""Takes and returns readings (rounds, agents, elements)."""


class LevelWorld(NamedTuple):
    hypothesis: Int[Array, ""]
    levels: Float[Array, "places"]


class Levels(Problem):
    """An action reads three samples at a place: its level, a standard normal number, with noise of 0.5."""

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Categorical

    def __init__(self, agents: int = 2, horizon: int = 9):
        self.agents, self.actions, self.horizon = agents, 3, horizon
        self.hypotheses = Categorical(3)

    def sample(self, *, key):
        levels = jax.random.normal(key, (3,))
        return LevelWorld(jnp.argmax(levels).astype(jnp.int8), levels)

    def start(self, world, *, key):
        return (), jnp.zeros((self.agents, 3), jnp.float16)

    def step(self, world, state, actions, *, key):
        noise = 0.5 * jax.random.normal(key, (self.agents, 3))
        return state, (world.levels[actions][:, None] + noise).astype(jnp.float16)

    def init_memory(self, agent, observation):
        return jnp.zeros(6)

    def update_memory(self, memory, agent, action, observation):
        there = jax.nn.one_hot(action.astype(jnp.int32), 3)
        return memory + jnp.concatenate([there, there * observation.astype(jnp.float32).mean()])

    def features(self, memory):
        return Features(memory)

    @property
    def display(self):
        return Display(readings=[Quantity("level", "m")], agent="gauge")


@cache
def level_team() -> Team:
    """Each gauge reads every place two or three times, and all stop after eight rounds."""
    table = jnp.array([[0, 1], [1, 2], [2, 0]], jnp.int32)
    network = drawn(partial(Inference, Levels(), 4, "paper+last", key=jax.random.key(0)))
    return Team(Levels(), Schedule(table, 4), FixedLength(8), NetworkInference(network))


@cache
def worlds(count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Readings and confidence of sessions in so many worlds, with a seed that no check uses."""
    episodes = play(level_team(), count, seed=77, exact=0)
    readings = np.asarray(episodes.played.observations)[:, 1:]
    confidence = episodes.at_stop(np.asarray(episodes.team.confidence))
    return np.stack([agent_parts(Levels(), row)[0] for row in readings]), confidence


@cache
def schedule() -> np.ndarray:
    """The actions of all sessions (rounds, agents)."""
    return np.asarray(play(level_team(), 1, seed=77, exact=0).played.actions)[0, :-1]


def unwritten(world: int, spoil: Spoil = lambda x: x) -> Recorded:
    """What `read_sessions` gives of a session in a world, without a journal; the confidence is not spoilt."""
    readings, here = spoil(worlds()[0][world].astype(np.float64)), np.ones((1, 8, 2), bool)
    parts, sure = [readings[None].astype(np.float32)], worlds()[1][world : world + 1]
    sessions = Sessions(schedule()[None], parts, here, here, np.array([8]), sure)
    return Recorded(f"world-{world}", sessions, np.ones(8, bool), schedule(), overruled=0, ended=True)


def record(folder: Path, world: int, spoil: Spoil = lambda x: x, rounds: int = 8, count: int = 40) -> Path:
    """A session in one of `count` worlds, with its readings spoilt, of so many rounds."""
    readings = spoil(worlds(count)[0][world].astype(np.float64))
    with level_team().session(folder / f"world-{world}") as session:
        for number in range(rounds):
            for gauge in range(2):
                session.tell(gauge, session.ask(gauge), readings[number, gauge].tolist(), round=number)
        if rounds == 8:
            session.ask(0)
    return folder / f"world-{world}"
