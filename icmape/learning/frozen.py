"""A policy that does not learn: the inference network is trained on what it samples."""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from icmape.errors import UserError
from icmape.learning.algorithms import Frozen
from icmape.learning.config import Config
from icmape.learning.off_policy import learn_replayed, update_inference
from icmape.learning.optimize import Optimizer
from icmape.learning.policy import Policy
from icmape.learning.rollout import Noise
from icmape.networks import InferenceNetwork, make_inference
from icmape.problems import Centralized, Problem
from icmape.references import Uniform

LOSSES = ("explored_tau", "inference_loss", "pooled_confidence")


class Learner(NamedTuple):
    """The inference network, and a policy that stays as it is."""

    actors: Any
    inference: InferenceNetwork
    slow_inference: InferenceNetwork
    inference_moments: PyTree

    @property
    def target_actors(self) -> Policy:
        """The same policy."""
        policy: Policy = self.actors
        return policy


def init(problem: Problem, config: Config, optimizer: Optimizer, *, key: Key[Array, ""]) -> Learner:
    """A fresh inference network beside the given policy."""
    net = config.network
    inference = make_inference(problem, net.width, net.encoder, net.inference, key=key)
    return Learner(frozen_policy(problem, config), inference, inference, optimizer.init(inference))


def frozen_policy(problem: Problem, config: Config) -> Policy:
    """The policy that the settings name."""
    name = settings(config).policy
    if name == "uniform":
        return Uniform(problem.agents, problem.actions + 1)
    from icmape.references.policies import named_policy  # heavy, and seldom needed
    from icmape.teams import load  # needs safetensors, which the core does without

    named: Policy | None = named_policy(name, problem)
    if named is not None:
        return named
    team = load(name, problem)
    policy: Policy = team.policy
    return policy


def check_policy(problem: Problem, config: Config) -> None:
    """Refuse what is for another problem or cannot be read, before anything is written or compiled."""
    name = settings(config).policy
    if name == "uniform":
        return
    from icmape.descriptions import describe
    from icmape.references.policies import named_policy
    from icmape.teams import load

    if named_policy(name, problem) is not None:
        return
    inner = problem.problem if isinstance(problem, Centralized) else problem
    found = describe(load(name, type(inner)).problem, local=False)
    wanted = describe(problem, local=False)
    if found != wanted:
        raise UserError(f"the policy in {name} is for {found}; the problem to train on is {wanted}")


def noise(config: Config, progress: Float[Array, ""], greedy: Bool[Array, "worlds"]) -> Noise:
    """None."""
    return Noise(jnp.zeros(greedy.shape), jnp.ones(greedy.shape))


learn = partial(learn_replayed, update_inference)
"""An iteration's gradient steps, and their mean losses."""


def settings(config: Config) -> Frozen:
    """This module's own."""
    assert isinstance(config.algorithm, Frozen)  # it is chosen by their type
    return config.algorithm
