"""Fault diagnosis: is each of four machines fine, worn or broken?

Each round, each of three technicians does one of two tests on one machine. The wear test should respond to machines
that are worn or broken, the failure test to broken ones only. Each technician is skilled at two machines and makes more
errors at the others. Two technicians at the same machine are in each other's way: their results are then coin flips. A
technician sees its own results only, and does not see where the others are.

    icmape train --problem examples.faults:Faults
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from icmape import BIT, Factored, Features, Problem

STATES, TESTS = ("fine", "worn", "broken"), ("wear", "failure")
RESPONDS = np.array([[0, 1, 1], [0, 0, 1]], bool)  # (tests, states)
SKILLED = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], bool)  # (technicians, machines)
AGENTS, MACHINES = SKILLED.shape


class Plant(NamedTuple):
    """What was drawn and is never shown."""

    hypothesis: jax.Array  # the state of each machine


class Visits(NamedTuple):
    """A technician's last test and its counts."""

    action: jax.Array  # -1 before the first round
    response: jax.Array
    counts: jax.Array  # (tests of all machines, 2) results without and with a response


class Faults(Problem):
    """Four machines and three technicians.

    Args:
        prior: probability that a machine is fine, worn and broken.
        skilled: how often a test is right when its technician is skilled at the machine.
        unskilled: how often it is right otherwise.
        horizon: rounds at most, the stop round included.
    """

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Factored
    prior: jax.Array
    skilled: jax.Array
    unskilled: jax.Array

    def __init__(
        self,
        prior: Sequence[float] = (0.5, 0.3, 0.2),
        skilled: float = 0.92,
        unskilled: float = 0.65,
        horizon: int = 25,
    ):
        self.agents, self.actions, self.horizon = AGENTS, MACHINES * len(TESTS), horizon
        self.hypotheses = Factored(MACHINES, len(STATES))
        self.prior = jnp.asarray(prior, jnp.float32)
        self.skilled, self.unskilled = jnp.float32(skilled), jnp.float32(unskilled)

    def action_name(self, action):
        """A test and a machine, counted from 1."""
        return f"{TESTS[action % len(TESTS)]} test of machine {action // len(TESTS) + 1}"

    def answer_name(self, answer):
        """The state of every machine."""
        return ", ".join(f"{machine + 1} {STATES[state]}" for machine, state in enumerate(answer))

    @property
    def observation_range(self):
        """Alarm (1) or none (0)."""
        return BIT

    def sample(self, *, key):
        """Machines are independent."""
        return Plant(jax.random.categorical(key, jnp.log(self.prior), shape=(MACHINES,)).astype(jnp.int8))

    def start(self, world, *, key):
        """Nothing is known before the first test."""
        return (), jnp.zeros(self.agents, jnp.int8)

    def step(self, world, state, actions, *, key):
        """One test by each technician."""
        states = jax.nn.one_hot(world.hypothesis[actions // len(TESTS)], len(STATES))
        chances = jnp.sum(self.chances(actions) * states, axis=1)
        return state, (jax.random.uniform(key, (self.agents,)) < chances).astype(jnp.int8)

    def chances(self, actions):
        """Probability that each test responds, for each state of its machine: (technicians, states)."""
        machines = actions // len(TESTS)
        right = jnp.where(jnp.asarray(SKILLED)[jnp.arange(AGENTS), machines], self.skilled, self.unskilled)
        alone = jnp.sum(machines[:, None] == machines[None], axis=1) == 1
        right = jnp.where(alone, right, 0.5)[:, None]
        return jnp.where(jnp.asarray(RESPONDS)[actions % len(TESTS)], right, 1 - right)

    def evidence(self, actions, responses):
        """Log-likelihood of a round for each state of each machine; zeros for actions of -1."""
        chances = self.chances(actions)
        logs = jnp.log(jnp.where(responses[:, None] > 0, chances, 1 - chances))
        return jnp.sum(jax.nn.one_hot(actions // len(TESTS), MACHINES)[:, :, None] * logs[:, None], axis=0)

    def init_memory(self, agent, observation):
        """No test yet."""
        return Visits(jnp.int32(-1), observation, jnp.zeros((self.actions, 2)))

    def update_memory(self, memory, agent, action, observation):
        """The last test, and all results counted."""
        last = jax.nn.one_hot(action, self.actions)[:, None] * jax.nn.one_hot(observation, 2)[None]
        return Visits(action.astype(jnp.int32), observation, memory.counts + last)

    def features(self, memory):
        """The last test, its result, and the counts."""
        test = jax.nn.one_hot(memory.action, self.actions)
        return Features(
            jnp.concatenate([test, test * memory.response.astype(jnp.float32), memory.counts.reshape(-1) / 4])
        )

    def team_features(self, memories):
        """Everyone's view, and the evidence of the round, which depends on who was alone at a machine."""
        evidence = self.evidence(memories.action, memories.response)
        return Features(jnp.concatenate([super().team_features(memories).token, evidence.reshape(-1)]))

    @property
    def posterior(self):
        """Exact: a test concerns one machine, so the posterior is a product over machines.

        It needs everyone's actions: what a technician's own results mean depends on where the others were.
        """
        return "exact"

    def belief(self, first=None):
        """The log-likelihood of each state of each machine."""
        return jnp.zeros(self.hypotheses.shape)

    def update_belief(self, belief, actions, observation):
        """Add the evidence of a round."""
        return belief + self.evidence(actions, observation)

    def log_posterior(self, belief):
        """Prior times likelihood, machine by machine."""
        return jax.nn.log_softmax(jnp.log(self.prior)[None] + belief, axis=1)
