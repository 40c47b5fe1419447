"""Search: in which of sixteen rooms is the intruder?

Three guards walk through a building, at most one room a round. A guard's sensor responds often when the intruder is in
the same room, less often when it is next door, and sometimes for nothing. Sensors differ. A guard knows the map and its
own position; it sees neither the other guards nor their alarms.

    icmape train --problem examples.patrol:Patrol
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from icmape import BIT, Categorical, Features, Problem

#  0 - 1 - 2 - 3
#  |           |
#  4 - 5 - 6 - 7
#  |       |
#  8 - 9 -10 -11
#      |       |
# 12 -13 -14 -15
SIDE = 4
ROOMS = np.arange(SIDE**2)
STARTS = (0, 6, 15)
MOVES = ("stay", "north", "east", "south", "west")
EAST, SOUTH = ROOMS % SIDE < SIDE - 1, np.isin(ROOMS, (0, 3, 4, 6, 9, 11))  # rooms with a door there
OPEN = np.stack([ROOMS >= 0, np.roll(SOUTH, SIDE), EAST, SOUTH, np.roll(EAST, 1)], axis=1)  # (rooms, moves)
LEADS = np.where(OPEN, ROOMS[:, None] + np.array([0, -SIDE, 1, SIDE, -1]), ROOMS[:, None])  # the room behind
NEAR = (LEADS[:, :, None] == ROOMS).any(axis=1)  # (rooms, rooms): the same or next door


class Building(NamedTuple):
    """What was drawn and is never shown."""

    hypothesis: jax.Array  # the intruder's room


class GuardMemory(NamedTuple):
    """A guard's position, its last alarm and its counts."""

    room: jax.Array
    alarm: jax.Array
    counts: jax.Array  # (rooms, 2) rounds without and with an alarm


class Patrol(Problem):
    """Three guards in a building of sixteen rooms.

    Args:
        here: how often each guard's sensor responds to an intruder in the same room.
        near: how often to one next door.
        far: how often otherwise.
        horizon: rounds at most, the stop round included.
    """

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Categorical
    here: jax.Array
    near: jax.Array
    far: jax.Array

    def __init__(
        self,
        here: Sequence[float] = (0.95, 0.9, 0.9),
        near: Sequence[float] = (0.1, 0.6, 0.4),
        far: Sequence[float] = (0.02, 0.1, 0.05),
        horizon: int = 25,
    ):
        self.agents, self.actions, self.horizon = len(STARTS), len(MOVES), horizon
        self.hypotheses = Categorical(len(ROOMS))
        self.here, self.near, self.far = (jnp.asarray(chance, jnp.float32) for chance in (here, near, far))

    def action_name(self, action):
        """A direction."""
        return MOVES[action]

    def answer_name(self, answer):
        """The intruder's room."""
        return f"room {answer}"

    @property
    def observation_range(self):
        """Alarm (1) or none (0)."""
        return BIT

    def sample(self, *, key):
        """All rooms are equally likely."""
        return Building(jax.random.randint(key, (), 0, len(ROOMS)).astype(jnp.int8))

    def start(self, world, *, key):
        """Every guard in its first room; nothing is sensed yet."""
        return jnp.asarray(STARTS, jnp.int32), jnp.zeros(self.agents, jnp.int8)

    def step(self, world, state, actions, *, key):
        """Every guard moves, and senses."""
        rooms = jnp.asarray(LEADS, jnp.int32)[state, actions]
        chances = jax.vmap(self.chances)(jnp.arange(self.agents), rooms)[:, world.hypothesis]
        return rooms, (jax.random.uniform(key, (self.agents,)) < chances).astype(jnp.int8)

    def chances(self, agent, room):
        """Probability of an alarm for each room of the intruder."""
        around = jnp.where(jnp.asarray(NEAR)[room], self.near[agent], self.far[agent])
        return jnp.where(jnp.asarray(ROOMS, jnp.int32) == room, self.here[agent], around)

    def init_memory(self, agent, observation):
        """The first room."""
        return GuardMemory(jnp.asarray(STARTS, jnp.int32)[agent], observation, jnp.zeros((len(ROOMS), 2)))

    def update_memory(self, memory, agent, action, observation):
        """The room just entered, and whether there was an alarm."""
        room = jnp.asarray(LEADS, jnp.int32)[memory.room, action]
        last = jax.nn.one_hot(room, len(ROOMS))[:, None] * jax.nn.one_hot(observation, 2)[None]
        return GuardMemory(room, observation, memory.counts + last)

    def features(self, memory):
        """The position, the last alarm, and the counts. The log-likelihood is linear in the counts."""
        room = jax.nn.one_hot(memory.room, len(ROOMS))
        return Features(jnp.concatenate([room, room * memory.alarm.astype(jnp.float32), memory.counts.reshape(-1) / 2]))

    def action_mask(self, memory):
        """Stay, or go through a door."""
        return jnp.asarray(OPEN)[memory.room]

    @property
    def posterior(self):
        """Exact: alarms are independent given the intruder's room."""
        return "exact"

    def belief(self, first=None):
        """Where the guards are, and the log-likelihood of every room."""
        return jnp.asarray(STARTS, jnp.int32), jnp.zeros(len(ROOMS))

    def update_own_belief(self, belief, agent, action, observation):
        """Move one guard, and add its alarm."""
        rooms, evidence = belief
        room = jnp.asarray(LEADS, jnp.int32)[rooms[agent], action]
        chances = self.chances(agent, room)
        return rooms.at[agent].set(room), evidence + jnp.log(jnp.where(observation > 0, chances, 1 - chances))

    def update_belief(self, belief, actions, observation):
        """Move the guards, and add their alarms."""
        for agent in range(self.agents):
            belief = self.update_own_belief(belief, jnp.int32(agent), actions[agent], observation[agent])
        return belief

    def log_posterior(self, belief):
        """The likelihood, since the prior is uniform."""
        return jax.nn.log_softmax(belief[1])
