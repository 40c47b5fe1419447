"""Mixing of the values of agents into the value of the team, in Q-learning."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from icmape.learning.algorithms import Value
from icmape.learning.config import Config
from icmape.networks import Encoder
from icmape.networks.encoders import make_encoder
from icmape.networks.shapes import view_shapes
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


class Monotonic(Mixing):
    """A mixing network that increases in every agent's value (QMIX).

    The value of the team is w₂ · [elu(W₁ q + b) - elu(b)], with W₁ ≥ 0, w₂ ≥ 0 and b linear in the state: a summary of
    the history of the team, by an encoder like those of centralized critics. It is 0 where all values are 0, as
    stopping is.
    """

    encoder: Encoder
    first: eqx.nn.Linear  # gives W₁
    offset: eqx.nn.Linear  # gives b
    second: eqx.nn.Linear  # gives w₂
    agents: int = eqx.field(static=True)

    def __init__(self, problem: Problem, config: Config, *, key: Key[Array, ""]):
        """Weights near 1, so that the value of the team begins as about the sum."""
        assert isinstance(config.algorithm, Value)  # mixings are theirs
        keys, net, size = jax.random.split(key, 4), config.network, config.algorithm.mixing_size
        shapes = view_shapes(problem, "team")
        self.agents = problem.agents
        self.encoder = make_encoder(shapes, problem.patch, net.hidden_size, net.encoder, problem.horizon, key=keys[0])
        self.first = _near_one(self.encoder.size, size * problem.agents, key=keys[1])
        self.offset = eqx.nn.Linear(self.encoder.size, size, key=keys[2])
        self.second = _near_one(self.encoder.size, size, key=keys[3])

    def __call__(
        self, values: Float[Array, "batch rounds agents"], seen: Histories
    ) -> Float[Array, "batch rounds columns"]:
        """The value of the team, in one column."""
        states = jax.vmap(self.encoder.unroll)(seen.team)
        return jax.vmap(jax.vmap(self.mixed))(values, states)[..., None]

    def mixed(self, values: Float[Array, "agents"], state: Float[Array, "summary"]) -> Float[Array, ""]:
        """The value of the team in one state."""
        offset = self.offset(state)
        rows = jnp.abs(self.first(state)).reshape(offset.shape[0], self.agents)
        hidden = jax.nn.elu(rows @ values + offset) - jax.nn.elu(offset)
        return jnp.mean(jnp.abs(self.second(state)) * hidden)

    @staticmethod
    def share(agents: int) -> float:
        """Equal fractions."""
        return 1.0 / agents


def _near_one(inputs: int, outputs: int, *, key: Key[Array, ""]) -> eqx.nn.Linear:
    """A layer with biases of 1."""
    return eqx.tree_at(lambda layer: layer.bias, eqx.nn.Linear(inputs, outputs, key=key), replace_fn=jnp.ones_like)


MIXINGS: dict[str, type[Mixing]] = {"sum": Sum, "none": Apart, "qmix": Monotonic}
"""Mixings by name (`algorithm.mixing`)."""
