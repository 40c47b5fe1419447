"""Mixing of the values of agents into the value of the team, in Q-learning."""

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
        """Mixed values: one column for the team, or one per agent."""

    @staticmethod
    def share(agents: int) -> float:
        """The initial fraction of the value of the team in the value of each agent."""
        return 1.0


class Sum(Mixing):
    """The sum of the values of the agents (VDN)."""

    def __init__(self, problem: Problem, config: Config, *, key: Key[Array, ""]):
        """No weights."""

    def __call__(
        self, values: Float[Array, "batch rounds agents"], seen: Histories
    ) -> Float[Array, "batch rounds columns"]:
        """The sum, in one column."""
        return jnp.sum(values, axis=-1, keepdims=True)

    @staticmethod
    def share(agents: int) -> float:
        """Equal fractions."""
        return 1.0 / agents


class Apart(Mixing):
    """Each agent learns the value of the team independently."""

    def __init__(self, problem: Problem, config: Config, *, key: Key[Array, ""]):
        """No weights."""

    def __call__(
        self, values: Float[Array, "batch rounds agents"], seen: Histories
    ) -> Float[Array, "batch rounds columns"]:
        """The values, unchanged."""
        return values


MIXINGS: dict[str, type[Mixing]] = {"sum": Sum, "none": Apart}
"""Mixings by name (`algorithm.mixing`)."""
