"""Encoders map a history to one summary per prefix, round by round (`step`) or in one pass (`unroll`)."""

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from icmape.problem import Features


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
    """An encoder that reads tokens only, built as `make(features, width, kind, key=key)`."""

    @abstractmethod
    def step_token(self, state: PyTree, token: Float[Array, "features"]) -> tuple[PyTree, Float[Array, "summary"]]:
        """The summary after one more token."""

    @abstractmethod
    def unroll_tokens(self, tokens: Float[Array, "rounds features"]) -> Float[Array, "rounds summary"]:
        """The summaries of all prefixes."""

    def step(self, state: PyTree, view: Features) -> tuple[PyTree, Float[Array, "summary"]]:
        """The summary after one more round."""
        return self.step_token(state, view.token)

    def unroll(self, views: Features) -> Float[Array, "rounds summary"]:
        """The summaries of all prefixes of a history."""
        return self.unroll_tokens(views.token)
