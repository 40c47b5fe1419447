"""Source localization: rounds played and learned from a second, and how both grow with the number of worlds.

Played are untrained teams up to the training horizon, so every episode is as long as it can be; learned are PPO's
gradient steps on as many episodes (actors, value and inference network).
"""

import statistics
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.timing import Measurement, alternate
from icmape.learning import ppo, replay, train
from icmape.learning.config import Config
from icmape.learning.off_policy import Turn
from icmape.learning.optimize import adam
from icmape.learning.presets import preset
from icmape.play.policy import as_policy
from icmape.problem import Problem
from icmape.settings import override

WORLDS = (32, 128, 512)


def measure(quick: bool = False) -> Measurement:
    """Rates at several numbers of worlds; the result is the largest one's rate of play."""
    rows = [rates(worlds, 1 if quick else 3) for worlds in (WORLDS[:2] if quick else WORLDS)]
    _, problem, config = sized(WORLDS[0])
    sizes = {"grid": f"{problem.grid}×{problem.grid}", "rounds": config.max_rounds, "width": config.network.hidden_size}
    return Measurement(rows[-1]["rounds played a second"], sizes, notes={"rows": rows})


def sized(worlds: int) -> tuple[int, Any, Config]:
    """The paper's problem with so many worlds an iteration, all of them explored and learned from."""
    chosen = preset("signal")
    changes = {
        "num_envs": worlds,
        "greedy_fraction": 0.0,
        "batch_size": worlds // 4,
        "gradient_steps": 4,
        "network.hidden_size": 64,
    }
    return worlds, chosen.build(), override(chosen.config("ppo"), changes)


def rates(worlds: int, repeats: int) -> dict[str, float]:
    """Rounds a second, played and learned from."""
    _, problem, config = sized(worlds)
    learner = jax.jit(lambda key: ppo.init(problem, config, adam(config.max_grad_norm), key=key))(jax.random.key(0))
    play = jax.jit(lambda learner, keys: played(problem, config, learner, keys))
    keys = jax.random.split(jax.random.key(1), worlds)
    episodes = play(learner, keys)
    memory = replay.push(replay.empty(episodes, worlds), episodes)
    turn = Turn(episodes, memory, jnp.float32(0.1), jnp.int32(0), jnp.float32(problem.horizon - 1))
    learn = jax.jit(lambda learner, turn: ppo.learn(problem, config, learner, turn, key=jax.random.key(2)))
    jax.block_until_ready(learn(learner, turn))
    seconds = alternate({"play": lambda: play(learner, keys), "learn": lambda: learn(learner, turn)}, repeats)
    rounds = float(jnp.sum(episodes.stop))
    rate = {name: rounds / statistics.median(samples) for name, samples in seconds.items()}
    return {"worlds": worlds, "rounds played a second": rate["play"], "rounds learned from a second": rate["learn"]}


def played(problem: Problem, config: Config, learner: ppo.Learner, keys: jax.Array) -> Any:
    """Explored episodes of the untrained team."""
    nobody = jnp.zeros(keys.shape[0], bool)
    return train.play(problem, config, as_policy(learner.actors), learner.slow_inference, jnp.zeros(()), keys, nobody)
