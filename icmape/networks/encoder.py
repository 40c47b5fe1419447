"""What an encoder is: a history in, one summary per prefix out, round by round or all at once, with the same result."""

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from icmape.problem import Features


class Encoder(eqx.Module):
    """`unroll` gives at every round what `step` gives there; a step costs the same in every round."""

    kind: eqx.AbstractVar[str]

    @property
    @abstractmethod
    def width(self) -> int:
        """Of its layers."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Of a summary."""

    @abstractmethod
    def start(self) -> PyTree:
        """The state before the first view."""

    @abstractmethod
    def step(self, state: PyTree, view: Features) -> tuple[PyTree, Float[Array, "summary"]]:
        """The summary after one view more."""

    @abstractmethod
    def unroll(self, views: Features) -> Float[Array, "rounds summary"]:
        """The summaries of all prefixes of a history."""


class TokenEncoder(Encoder):
    """An encoder of tokens alone, built as `make(features, width, kind, key=key)`."""

    @abstractmethod
    def step_token(self, state: PyTree, token: Float[Array, "features"]) -> tuple[PyTree, Float[Array, "summary"]]:
        """Read one token more."""

    @abstractmethod
    def unroll_tokens(self, tokens: Float[Array, "rounds features"]) -> Float[Array, "rounds summary"]:
        """The summaries of all prefixes."""

    def step(self, state: PyTree, view: Features) -> tuple[PyTree, Float[Array, "summary"]]:
        """The summary after one view more."""
        return self.step_token(state, view.token)

    def unroll(self, views: Features) -> Float[Array, "rounds summary"]:
        """The summaries of all prefixes of a history."""
        return self.unroll_tokens(views.token)
