"""Stopping rules, and the behaviour of a team (policy and stopping rule) in rollouts."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from icmape.play.inference import TeamInference
from icmape.play.policy import Policy, Round, takes
from icmape.problem import Problem


class LearnedStop(eqx.Module):
    """The episode ends when any agent chooses STOP."""

    kind: Literal["learned"] = eqx.field(static=True, default="learned")


class FixedLength(eqx.Module):
    """STOP after a number of rounds of data."""

    rounds: int = eqx.field(static=True)
    kind: Literal["length"] = eqx.field(static=True, default="length")


class Threshold(eqx.Module):
    """STOP when the confidence of the inference, which reads the data of all agents, reaches a level."""

    level: float = eqx.field(static=True)
    kind: Literal["threshold"] = eqx.field(static=True, default="threshold")


Stop = LearnedStop | FixedLength | Threshold


class _Minds(NamedTuple):
    policy: PyTree
    inference: PyTree


class Behaviour(eqx.Module):
    """Policy and stopping rule of a team, as a policy for rollouts."""

    problem: Problem
    policy: Any
    stop: Stop
    inference: TeamInference

    @property
    def takes(self) -> str:
        """The action mask of the policy."""
        return takes(self.policy)

    def start(self) -> PyTree:
        """State before round 0."""
        watching = self.inference.start(self.problem) if isinstance(self.stop, Threshold) else ()
        return _Minds(self.policy.start(), watching)

    def decide(
        self, state: _Minds, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[_Minds, Float[Array, "agents choices"]]:
        """Scores of the policy. STOP is forced or forbidden, unless the agents decide it themselves."""
        policy: Policy = self.policy
        mind, scores = policy.decide(state.policy, seen, key=key)
        if isinstance(self.stop, LearnedStop):
            return _Minds(mind, state.inference), scores
        if isinstance(self.stop, FixedLength):
            now, watching = seen.number >= self.stop.rounds, state.inference
        else:
            watching, beliefs = self.inference.step(self.problem, state.inference, seen)
            now = self.problem.hypotheses.confidence(beliefs) >= self.stop.level
        return _Minds(mind, watching), scores.at[:, -1].set(jnp.where(now, jnp.inf, -jnp.inf))
