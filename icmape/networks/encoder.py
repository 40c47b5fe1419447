"""Encoders map a history to one summary per prefix, round by round (`step`) or in one pass (`unroll`)."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from icmape.errors import UserError
from icmape.problem import Features
from icmape.problem.contract import choose


class Encoder(eqx.Module):
    """`step` and `unroll` give equal summaries; the cost of a step does not grow with the round."""

    kind: eqx.AbstractVar[str]

    @property
    @abstractmethod
    def width(self) -> int:
        """Width of the layers."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Size of a summary."""

    @abstractmethod
    def start(self) -> PyTree:
        """The state before the first round."""

    @abstractmethod
    def step(self, state: PyTree, view: Features) -> tuple[PyTree, Float[Array, "summary"]]:
        """The summary after one more round."""

    @abstractmethod
    def unroll(self, views: Features) -> Float[Array, "rounds summary"]:
        """The summaries of all prefixes of a history."""


class TokenEncoder(Encoder):
    """An encoder that reads tokens only, built as `make(features, width, kind, rounds, key=key)`."""

    @abstractmethod
    def step_token(self, state: PyTree, token: Float[Array, "features"]) -> tuple[PyTree, Float[Array, "summary"]]:
        """The summary after one more token."""

    @abstractmethod
    def unroll_tokens(self, tokens: Float[Array, "rounds features"]) -> Float[Array, "rounds summary"]:
        """The summaries of all prefixes."""

    def summary(self, state: PyTree) -> Float[Array, "summary"]:
        """The summary of a state after at least one token, which rounds with a missing reading repeat."""
        raise UserError(f"the encoder {type(self).__name__} takes no missing readings: write summary(state) for it")

    def step(self, state: PyTree, view: Features) -> tuple[PyTree, Float[Array, "summary"]]:
        """The summary after one more round."""
        after = self.step_token(state, view.token)
        return after if view.fresh is None else choose(view.fresh, after, (state, self.summary(state)))

    def unroll(self, views: Features) -> Float[Array, "rounds summary"]:
        """The summaries of all prefixes of a history."""
        if views.fresh is None:
            return self.unroll_tokens(views.token)
        fresh_first = jnp.argsort(~views.fresh)  # in their order; what follows is not looked at
        newest = jnp.maximum(jnp.cumsum(views.fresh) - 1, 0)
        return self.unroll_tokens(views.token[fresh_first])[newest]
