"""A fixed policy: only the inference network is trained, on the episodes of the policy."""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from icmape.learning.config import Config
from icmape.learning.off_policy import learn_replayed, update_inference
from icmape.learning.optimize import Optimizer
from icmape.networks import InferenceNetwork, make_inference
from icmape.play.open_loop import Uniform
from icmape.play.policy import Policy
from icmape.play.rollout import Noise
from icmape.problem import Problem

LOSSES = ("explored_tau", "inference_loss", "pooled_confidence")


class Learner(NamedTuple):
    """The inference network, and a fixed policy."""

    actors: Any
    inference: InferenceNetwork
    slow_inference: InferenceNetwork
    inference_moments: PyTree

    @property
    def target_actors(self) -> Policy:
        """The fixed policy."""
        policy: Policy = self.actors
        return policy


def init(
    problem: Problem, config: Config, optimizer: Optimizer, policy: Policy | None = None, *, key: Key[Array, ""]
) -> Learner:
    """A fresh inference network and the policy (default: uniform actions)."""
    net = config.network
    inference = make_inference(problem, net.hidden_size, net.encoder, net.inference, key=key)
    played = Uniform(problem.agents, problem.actions + 1) if policy is None else policy
    return Learner(played, inference, inference, optimizer.init(inference))


def noise(config: Config, progress: Float[Array, ""], greedy: Bool[Array, "worlds"]) -> Noise:
    """No exploration."""
    return Noise(jnp.zeros(greedy.shape), jnp.ones(greedy.shape))


learn = partial(learn_replayed, update_inference)
"""The gradient steps of an iteration, and their mean losses."""
