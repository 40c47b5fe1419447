"""Thompson sampling for source localization: each agent draws a cell from its own posterior and moves towards it.

An agent reads its own windows and the others' positions: as the episode continues, they have not found the source
there. It takes the first action of its list that brings it nearer to the drawn cell, and stays if none does. It never
stops by itself.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float16, Int, Int8, Integer, Key

from icmape.play.named_policies import NamedPolicy
from icmape.play.policy import Round
from icmape.zoo.signal.field_posterior import SourceBelief
from icmape.zoo.signal.seekers import own_positions
from icmape.zoo.signal.signal import DOWN, LEFT, RIGHT, STAY, UP, Signal

DETECTORS_ORDERS = ((DOWN, LEFT, UP, RIGHT), (RIGHT, DOWN, UP, LEFT))  # further detectors take them in turn
FIELD_ORDER = (RIGHT, UP, LEFT, DOWN)
PAPER_INTENSITY = 0.7  # of the distractor, in the paper's rule


class Minds(NamedTuple):
    """Evidence of all agents."""

    says: Float[Array, "agents cells"]  # log-evidence on the source from detections and from others' positions
    field: Any  # evidence of the field agent's readings


class ThompsonSampling(eqx.Module):
    """Each agent uses its own readings and the others' positions. Two versions differ in the likelihood."""

    problem: Signal
    from_problem: ClassVar[bool] = True

    @property
    def takes(self) -> str:
        """An agent may stay where it is."""
        return "all"

    @abstractmethod
    def prior(self) -> Float[Array, "cells"]:
        """log-probabilities of the source for detectors, before anything is seen."""

    @abstractmethod
    def field_prior(self) -> Any:
        """Prior of the field agent."""

    @abstractmethod
    def covered(self, position: Int8[Array, "2"]) -> Bool[Array, "cells"]:
        """The cells that count as looked at from here."""

    @abstractmethod
    def hits(self, window: Float16[Array, "m m"], position: Int8[Array, "2"]) -> Bool[Array, "cells"]:
        """Cells with a detection in a detector's window."""

    @abstractmethod
    def read(self, field: Any, window: Float16[Array, "m m"], position: Int8[Array, "2"]) -> Any:
        """The field agent's belief after one more window."""

    @abstractmethod
    def sources(self, field: Any) -> Float[Array, "cells"]:
        """log-probabilities of the source by the field agent's readings, up to a constant."""

    def start(self) -> Minds:
        """Nothing seen."""
        return Minds(jnp.zeros((self.problem.agents, self.problem.grid**2)), self.field_prior())

    def decide(self, state: Minds, seen: Round, *, key: Key[Array, ""]) -> tuple[Minds, Float[Array, "agents choices"]]:
        """Draw a cell for every agent, and the move towards it."""
        positions, windows = own_positions(self.problem, seen.observation), seen.observation.window
        looked = (seen.number > 0) | self.problem.observe_start
        state = jax.lax.cond(looked, lambda: self.take_in(state, windows, positions), lambda: state)
        logits = self.logits(state)
        drawn = jax.vmap(jax.random.categorical)(jax.random.split(key, self.problem.agents), logits)
        moves = jax.vmap(lambda *inputs: toward(self.problem, *inputs))(self.orders(), positions, drawn)
        return state, jax.nn.one_hot(moves, self.problem.actions + 1).at[:, -1].set(-jnp.inf)

    def take_in(self, minds: Minds, windows: Float16[Array, "agents m m"], positions: Int8[Array, "agents 2"]) -> Minds:
        """Evidence after the agents' own windows and the others' positions."""
        missed = jnp.where(jax.vmap(self.covered)(positions), jnp.log1p(-self.problem.detection), 0.0)
        hits = jax.vmap(self.hits)(windows[:-1], positions[:-1])
        detected = jnp.where(hits, jnp.log(self.problem.detection), -jnp.inf)
        own_evidence = jnp.where(jnp.any(hits, axis=1, keepdims=True), detected, missed[:-1])
        others_evidence = jnp.sum(missed, axis=0, keepdims=True) - missed
        says = minds.says + others_evidence + jnp.append(own_evidence, jnp.zeros_like(own_evidence[:1]), axis=0)
        return Minds(says, self.read(minds.field, windows[-1], positions[-1]))

    def logits(self, minds: Minds) -> Float[Array, "agents cells"]:
        """Posterior of every agent over the source, up to constants."""
        detectors = jnp.broadcast_to(self.prior(), minds.says[:-1].shape)
        return minds.says + jnp.append(detectors, self.sources(minds.field)[None], axis=0)

    def orders(self) -> Int[Array, "agents 4"]:
        """Order in which each agent tries its moves."""
        detectors = [DETECTORS_ORDERS[agent % len(DETECTORS_ORDERS)] for agent in range(self.problem.detectors)]
        return jnp.asarray([*detectors, FIELD_ORDER])


class Thompson(ThompsonSampling):
    """Exact likelihoods: whole windows count; others' windows count as misses of a detector."""

    kind: Literal["thompson"] = eqx.field(static=True, default="thompson")

    def prior(self) -> Float[Array, "cells"]:
        """The problem's."""
        return jnp.log(self.problem.field.prior().sources)

    def field_prior(self) -> SourceBelief:
        """Pairs far enough apart, and the distractor's intensity."""
        return self.problem.field.prior()

    def covered(self, position: Int8[Array, "2"]) -> Bool[Array, "cells"]:
        """The window."""
        return self.problem.on_grid(jnp.ones((self.problem.window,) * 2), position).reshape(-1) > 0

    def hits(self, window: Float16[Array, "m m"], position: Int8[Array, "2"]) -> Bool[Array, "cells"]:
        """The cell that showed it."""
        return self.problem.on_grid((window > 0).astype(jnp.float32), position).reshape(-1) > 0

    def read(self, field: SourceBelief, window: Float16[Array, "m m"], position: Int8[Array, "2"]) -> SourceBelief:
        """Exactly."""
        return self.problem.field.read(field, self.problem.field_readings(window, position))

    def sources(self, field: SourceBelief) -> Float[Array, "cells"]:
        """Distractor and intensity summed out."""
        return jnp.log(field.sources)


class ThompsonPaper(ThompsonSampling):
    """The paper's literal rule, which differs from its environment.

    A visit says something of the visited cell alone, a detection too. The field is the larger of both signals, the
    distractor's intensity is 0.7, source and distractor are any two different cells, and noise is not clipped.
    """

    kind: Literal["thompson-paper"] = eqx.field(static=True, default="thompson-paper")

    def prior(self) -> Float[Array, "cells"]:
        """Uniform."""
        return jnp.zeros(self.problem.grid**2)

    def field_prior(self) -> Float[Array, "cells cells"]:
        """log-evidence of every pair (distractor, source)."""
        return jnp.where(jnp.eye(self.problem.grid**2, dtype=bool), -jnp.inf, 0.0)

    def covered(self, position: Int8[Array, "2"]) -> Bool[Array, "cells"]:
        """The cell where the agent is."""
        row, column = position.astype(jnp.int32)
        return jnp.arange(self.problem.grid**2) == row * self.problem.grid + column

    def hits(self, window: Float16[Array, "m m"], position: Int8[Array, "2"]) -> Bool[Array, "cells"]:
        """The same, whichever cell of the window showed it."""
        return self.covered(position) & jnp.any(window > 0)

    def read(
        self, field: Float[Array, "cells cells"], window: Float16[Array, "m m"], position: Int8[Array, "2"]
    ) -> Float[Array, "cells cells"]:
        """By a normal density of every reading."""
        rows, columns, inside = (x.reshape(-1) for x in self.problem.window_at(position))
        values = window.astype(jnp.float32).reshape(-1)
        at_row, at_column = self.problem.place(jnp.arange(self.problem.grid**2))

        def tell(index: Int[Array, ""], logs: Float[Array, "cells cells"]) -> Float[Array, "cells cells"]:
            steps = jnp.abs(at_row - rows[index]) + jnp.abs(at_column - columns[index])
            level = jnp.exp(-self.problem.decay * steps.astype(jnp.float32))
            expected = jnp.maximum(level[None, :], PAPER_INTENSITY * level[:, None])
            says = -0.5 * ((values[index] - expected) / self.problem.noise) ** 2
            return logs + jnp.where(inside[index], says, 0.0)

        logs = jax.lax.fori_loop(0, values.shape[0], tell, field)
        return logs - jnp.max(logs)

    def sources(self, field: Float[Array, "cells cells"]) -> Float[Array, "cells"]:
        """The distractor summed out."""
        return jax.nn.logsumexp(field, axis=0)

    def logits(self, minds: Minds) -> Float[Array, "agents cells"]:
        """Uniform if detections from two places exclude every cell."""
        logits = super().logits(minds)
        return jnp.where(jnp.any(jnp.isfinite(logits), axis=1, keepdims=True), logits, 0.0)


POLICIES = {
    "thompson": NamedPolicy("Thompson sampling, which reads others' positions", Thompson),
    "thompson-paper": NamedPolicy(
        "the same by the paper's literal rule", ThompsonPaper, {"network.inference": "paper"}
    ),
}


def toward(
    problem: Signal, order: Int[Array, "4"], position: Int8[Array, "2"], cell: Integer[Array, ""]
) -> Int[Array, ""]:
    """The first move of a list that takes an agent nearer to a cell; STAY if none does."""
    place = jnp.stack(problem.place(cell))
    targets = problem.moved(jnp.broadcast_to(position, (*order.shape, 2)), order).astype(jnp.int32)
    away = jnp.sum(jnp.abs(targets - place[None]), axis=1)
    nearer = away < jnp.sum(jnp.abs(position.astype(jnp.int32) - place))
    return jnp.where(jnp.any(nearer), order[jnp.argmax(nearer)], STAY)
