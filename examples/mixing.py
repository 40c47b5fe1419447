"""Spectroscopy: which two of six dyes are in the vat?

Two dyes are mixed in an unknown proportion. Each round, each of three meters reads the light behind one of ten filters.
A meter responds well to a third of the spectrum and badly to the rest. Its gain is unknown, and the lamp that all
meters share flickers from round to round. A meter sees its own readings only.

The posterior is an integral over the proportion, the gains and the flicker of every round, which has no closed form. It
is left out: `posterior` is "none", and the inference network has to learn from samples alone.

    icmape train --problem examples.mixing:Mixing
"""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from icmape import Categorical, Features, Problem, Range

METERS, FILTERS, DYES = 3, 10, 6


def bumps(number, width):
    """Gaussian curves over the filters, with peaks at equal distances."""
    peaks = (np.arange(number)[:, None] + 0.5) * FILTERS / number - 0.5
    return np.exp(-0.5 * ((np.arange(FILTERS) - peaks) / width) ** 2)


PAIRS = np.array(list(itertools.combinations(range(DYES), 2)))
SPECTRA = 0.1 + bumps(DYES, 1.2)  # (dyes, filters)
RESPONSE = bumps(METERS, 2.0)  # (meters, filters)


class Vat(NamedTuple):
    """What was drawn and is never shown."""

    hypothesis: jax.Array  # which of the 15 pairs
    share: jax.Array  # of the first dye
    gains: jax.Array  # (meters)


class Log(NamedTuple):
    """A meter's last reading, and its sums per filter."""

    filter: jax.Array  # -1 before the first round
    reading: jax.Array  # its logarithm
    total: jax.Array  # (filters) sum of readings
    count: jax.Array  # (filters) number of readings


class Mixing(Problem):
    """Three meters at a vat with two of six dyes.

    Args:
        light: scale of the readings. The variance of a reading is equal to its mean: more light is less noise.
        least_share: smallest possible share of a dye in the mixture.
        gain_spread: standard deviation of the logarithm of a meter's gain.
        flicker: standard deviation of the logarithm of the lamp's light in a round.
        horizon: rounds at most, the stop round included.
    """

    agents: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    hypotheses: Categorical
    light: jax.Array
    least_share: jax.Array
    gain_spread: jax.Array
    flicker: jax.Array

    def __init__(
        self,
        light: float = 16.0,
        least_share: float = 0.2,
        gain_spread: float = 0.4,
        flicker: float = 0.4,
        horizon: int = 25,
    ):
        self.agents, self.actions, self.horizon = METERS, FILTERS, horizon
        self.hypotheses = Categorical(len(PAIRS))
        self.light, self.least_share = jnp.float32(light), jnp.float32(least_share)
        self.gain_spread, self.flicker = jnp.float32(gain_spread), jnp.float32(flicker)

    def action_name(self, action):
        """A filter, counted from 1."""
        return f"filter {action + 1}"

    def answer_name(self, answer):
        """Two dyes, A to F."""
        return "dyes " + " and ".join("ABCDEF"[dye] for dye in PAIRS[int(answer)])

    @property
    def observation_range(self):
        """Counts are not negative."""
        return Range(low=0)

    def sample(self, *, key):
        """All pairs are equally likely."""
        for_pair, for_share, for_gains = jax.random.split(key, 3)
        pair = jax.random.randint(for_pair, (), 0, len(PAIRS)).astype(jnp.int8)
        share = jax.random.uniform(for_share, minval=self.least_share, maxval=1 - self.least_share)
        return Vat(pair, share, jnp.exp(self.gain_spread * jax.random.normal(for_gains, (METERS,))))

    def start(self, world, *, key):
        """Nothing is read before the first round."""
        return (), jnp.zeros(METERS, jnp.float16)

    def step(self, world, state, actions, *, key):
        """One reading by each meter, which is never negative."""
        for_lamp, for_noise = jax.random.split(key)
        lamp = self.light * jnp.exp(self.flicker * jax.random.normal(for_lamp))
        first, second = jnp.asarray(SPECTRA, jnp.float32)[jnp.asarray(PAIRS)[world.hypothesis]]
        spectrum = world.share * first + (1 - world.share) * second
        response = jnp.asarray(RESPONSE, jnp.float32)[jnp.arange(METERS), actions]
        mean = lamp * world.gains * response * spectrum[actions]
        reading = mean + jnp.sqrt(mean) * jax.random.normal(for_noise, (METERS,))
        return state, jnp.maximum(reading, 0.0).astype(jnp.float16)

    def init_memory(self, agent, observation):
        """No reading yet."""
        return Log(jnp.int32(-1), jnp.float32(0.0), jnp.zeros(FILTERS), jnp.zeros(FILTERS))

    def update_memory(self, memory, agent, action, observation):
        """The last reading, added to those before."""
        place = jax.nn.one_hot(action, FILTERS)
        reading = jnp.log((observation.astype(jnp.float32) + 1) / self.light)
        return Log(action.astype(jnp.int32), reading, memory.total + reading * place, memory.count + place)

    def features(self, memory):
        """The last reading at its filter, the mean reading of every filter, and the counts."""
        place = jax.nn.one_hot(memory.filter, FILTERS)
        mean = memory.total / jnp.maximum(memory.count, 1.0)
        return Features(jnp.concatenate([place, place * memory.reading, mean, memory.count / 4]))
