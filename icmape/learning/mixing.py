"""How agents' values make the team's value in Q-learning."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from icmape.learning.config import Config
from icmape.play.rollout import Histories
from icmape.problem import Problem


class Mixing(eqx.Module):
    """A mixing network, or a rule without weights. Built as `Mixing(problem, config, key=key)`."""

    @abstractmethod
    def __init__(self, problem: Problem, config: Config, *, key: Key[Array, ""]):
        """Fresh weights."""

    @abstractmethod
    def __call__(
        self, values: Float[Array, "batch rounds agents"], seen: Histories
    ) -> Float[Array, "batch rounds columns"]:
        """What is learned: one column for the team, or one for each agent."""

    @staticmethod
    def share(agents: int) -> float:
        """The part of the team's value that each agent's value starts with."""
        return 1.0


class Sum(Mixing):
    """The sum of the agents' values (VDN)."""

    def __init__(self, problem: Problem, config: Config, *, key: Key[Array, ""]):
        """No weights."""

    def __call__(
        self, values: Float[Array, "batch rounds agents"], seen: Histories
    ) -> Float[Array, "batch rounds columns"]:
        """In one column."""
        return jnp.sum(values, axis=-1, keepdims=True)

    @staticmethod
    def share(agents: int) -> float:
        """Equal parts."""
        return 1.0 / agents


class Apart(Mixing):
    """Each agent learns the team's value by itself."""

    def __init__(self, problem: Problem, config: Config, *, key: Key[Array, ""]):
        """No weights."""

    def __call__(
        self, values: Float[Array, "batch rounds agents"], seen: Histories
    ) -> Float[Array, "batch rounds columns"]:
        """As they are."""
        return values


MIXINGS: dict[str, type[Mixing]] = {"sum": Sum, "none": Apart}
"""By the name that `algorithm.mixing` takes."""
