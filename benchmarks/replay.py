"""Memory of a replay buffer."""

from functools import partial

import jax

from benchmarks.timing import Measurement
from icmape.learning import replay, td3
from icmape.learning.optimize import adam
from icmape.learning.presets import preset
from icmape.play.policy import LearnedPolicy
from icmape.play.rollout import play_greedy
from icmape.problem import Problem

EPISODES = 50_000


def measure(quick: bool = False) -> Measurement:
    """Megabytes of a full replay, from its layout: nothing is allocated."""
    a3p5 = preset("bandit-a3p5")
    problem, config = a3p5.build(), a3p5.config("td3")
    learner = jax.eval_shape(lambda: td3.init(problem, config, adam(config.max_grad_norm), key=jax.random.key(0)))
    episodes = jax.eval_shape(partial(_play, problem), learner)
    held = jax.eval_shape(partial(replay.empty, capacity=EPISODES), episodes)
    size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(held))
    sizes = {"episodes": EPISODES, "rounds": problem.horizon, "agents": problem.agents}
    return Measurement(size / 1e6, sizes, notes={"bytes_per_episode": size / EPISODES})


def _play(problem: Problem, learner: td3.Learner) -> object:
    return play_greedy(problem, LearnedPolicy(learner.actors), jax.random.split(jax.random.key(0), 1))
