"""One small training program for all tests that train, so that it is compiled once."""

import jax
import jax.numpy as jnp

from icmape.learning import train
from icmape.learning.config import Config, with_algorithm
from icmape.learning.train import TrainState
from icmape.settings import override
from tests.coins import Coins

COST = 0.045  # the price of a round, held fixed
COINS = Coins()
COINS_CONFIG = override(
    with_algorithm(Config(), "td3"),
    {
        "delta": 0.1,
        "iterations": 240,
        "worlds": 32,
        "greedy_share": 0.5,
        "updates": 4,
        "batch": 32,
        "replay": 1024,
        "warmup": 128,
        "actor_rate": 3e-3,
        "critic_rate": 1e-2,
        "inference_rate": 1e-2,
        "validate_every": 5,
        "validation_worlds": 16,
        "network.width": 16,
        "network.stop_bias": -2.0,
        "algorithm.polyak": 0.05,
        "algorithm.behind": 0.3,
        "algorithm.least_say": 0.2,
        "dual.rate": 0.0,
        "dual.start": COST,
        "plan.iterations": 0,
        "posterior": "network",
    },
)


def start(*seeds: int) -> TrainState:
    """All seeds before their first iteration."""
    return train.start(COINS, COINS_CONFIG, jnp.asarray(seeds, jnp.int32))


def advance(states: TrainState, first: int, count: int) -> tuple[TrainState, dict]:
    """Iterations first to first + count - 1. The states given stay usable (the program itself takes them over)."""
    copies = jax.tree.map(lambda leaf: leaf.copy(), states)
    return train.advance(COINS, COINS_CONFIG, copies, jnp.int32(first), jnp.int32(count))
