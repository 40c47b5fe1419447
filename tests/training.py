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
        "num_envs": 32,
        "greedy_fraction": 0.5,
        "gradient_steps": 4,
        "batch_size": 32,
        "buffer_size": 1024,
        "learning_starts": 128,
        "actor_lr": 3e-3,
        "critic_lr": 1e-2,
        "inference_lr": 1e-2,
        "validation_interval": 5,
        "validation_episodes": 16,
        "settling_episodes": 64,
        "network.hidden_size": 16,
        "network.stop_bias": -2.0,
        "algorithm.target_update_rate": 0.05,
        "algorithm.min_round_weight": 0.3,
        "algorithm.min_stop_prob": 0.2,
        "dual.lr": 0.0,
        "dual.init": COST,
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
