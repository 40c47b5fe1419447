"""Signal classification: which wave is on the line?

Twelve taps along a closed line carry a wave of one of five frequencies and one of eight phases. Its amplitude is
unknown too; a small one makes a world hard. Each round, each of three agents reads one tap. The reading has Gaussian
noise that grows with the tap's distance from the agent, and the agents' instruments differ. An agent sees its own
readings only.

    icmape train --problem examples.dials:Dials
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from icmape import Categorical, Features, Problem

TAPS, FREQUENCIES, PHASES = 12, 5, 8
SITES = (1, 5, 9)  # the tap at which each agent sits
FREQUENCY, PHASE = np.divmod(np.arange(FREQUENCIES * PHASES), PHASES)
ANGLE = 2 * np.pi * ((FREQUENCY[:, None] + 1) * np.arange(TAPS) / TAPS + PHASE[:, None] / PHASES)
WAVES = np.cos(ANGLE).astype(np.float32)  # (waves, taps)
STEPS = np.abs(np.arange(TAPS) - np.array(SITES)[:, None])
DISTANCE = np.minimum(STEPS, TAPS - STEPS).astype(np.float32)  # (agents, taps), the shorter way round


class Line(NamedTuple):
    """What was drawn and is never shown."""

    hypothesis: jax.Array  # frequency and phase
    amplitude: jax.Array


class Notes(NamedTuple):
    """An agent's last reading, and its sums per tap."""

    tap: jax.Array  # -1 before the first round
    reading: jax.Array
    total: jax.Array  # (taps) sum of readings
    count: jax.Array  # (taps) number of readings


class Dials(Problem):
    """Three agents along a line of twelve taps.

    Args:
        noise: standard deviation of each agent's readings at its own tap.
        reach: distance in taps at which it has doubled.
        amplitudes: possible amplitudes of the wave, equally likely.
        horizon: rounds at most, the stop round included.
    """

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Categorical
    noise: jax.Array
    reach: jax.Array
    amplitudes: jax.Array

    def __init__(
        self,
        noise: Sequence[float] = (0.4, 0.6, 0.8),
        reach: float = 2.0,
        amplitudes: Sequence[float] = (0.7, 1.0, 1.5),
        horizon: int = 25,
    ):
        self.agents, self.actions, self.horizon = len(SITES), TAPS, horizon
        self.hypotheses = Categorical(len(WAVES))
        self.noise, self.reach = jnp.asarray(noise, jnp.float32), jnp.float32(reach)
        self.amplitudes = jnp.asarray(amplitudes, jnp.float32)

    def action_name(self, action):
        """A tap, counted from 1."""
        return f"tap {action + 1}"

    def answer_name(self, answer):
        """Frequency in waves per line, and phase in degrees."""
        return f"frequency {FREQUENCY[answer] + 1}, phase {360 * PHASE[answer] // PHASES}°"

    def sample(self, *, key):
        """All waves and amplitudes are equally likely."""
        for_wave, for_amplitude = jax.random.split(key)
        wave = jax.random.randint(for_wave, (), 0, len(WAVES)).astype(jnp.int8)
        return Line(wave, jax.random.choice(for_amplitude, self.amplitudes))

    def start(self, world, *, key):
        """Nothing is read before the first round."""
        return (), jnp.zeros(self.agents, jnp.float16)

    def step(self, world, state, actions, *, key):
        """One reading by each agent."""
        level = world.amplitude * jnp.asarray(WAVES)[world.hypothesis, actions]
        noise = jax.vmap(self.deviation)(jnp.arange(self.agents), actions) * jax.random.normal(key, (self.agents,))
        return state, (level + noise).astype(jnp.float16)

    def deviation(self, agent, tap):
        """Standard deviation of an agent's readings at a tap."""
        return self.noise[agent] * (1 + (jnp.asarray(DISTANCE)[agent, tap] / self.reach) ** 2)

    def init_memory(self, agent, observation):
        """No reading yet."""
        return Notes(jnp.int32(-1), jnp.float32(0.0), jnp.zeros(TAPS), jnp.zeros(TAPS))

    def update_memory(self, memory, agent, action, observation):
        """The last reading, added to those before."""
        tap, reading = jax.nn.one_hot(action, TAPS), observation.astype(jnp.float32)
        return Notes(action.astype(jnp.int32), reading, memory.total + reading * tap, memory.count + tap)

    def features(self, memory):
        """The last reading at its tap, sums and counts. At a known amplitude the log-likelihood is linear in these."""
        tap = jax.nn.one_hot(memory.tap, TAPS)
        return Features(jnp.concatenate([tap, tap * memory.reading, memory.total / 2, memory.count / 2]))

    @property
    def posterior(self):
        """Exact: the amplitude is summed out."""
        return "exact"

    def belief(self, first=None):
        """The log-likelihood of every amplitude and wave."""
        return jnp.zeros((len(self.amplitudes), len(WAVES)))

    def update_own_belief(self, belief, agent, action, observation):
        """Add the reading of one agent."""
        level = self.amplitudes[:, None] * jnp.asarray(WAVES)[:, action][None]
        return belief - ((observation.astype(jnp.float32) - level) / self.deviation(agent, action)) ** 2 / 2

    def update_belief(self, belief, actions, observation):
        """Add the readings of a round."""
        for agent in range(self.agents):
            belief = self.update_own_belief(belief, jnp.int32(agent), actions[agent], observation[agent])
        return belief

    def log_posterior(self, belief):
        """The likelihood, summed over amplitudes."""
        return jax.nn.log_softmax(jax.nn.logsumexp(belief, axis=0))
