"""The parts a team is made of besides its policy: when it stops, and what it infers."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, Key, PyTree

from icmape.learning.policy import Policy, Round, takes
from icmape.learning.rollout import Episode
from icmape.networks import InferenceNetwork
from icmape.problems import Problem


class NetworkInference(eqx.Module):
    """The posterior by a trained network."""

    network: InferenceNetwork
    kind: Literal["network"] = eqx.field(static=True, default="network")

    def start(self, problem: Problem) -> PyTree:
        """No data."""
        return self.network.start()

    def step(self, problem: Problem, state: PyTree, seen: Round) -> tuple[PyTree, Float[Array, "..."]]:
        """Scores over the hypotheses after one more round of everyone."""
        return self.network.step(state, problem.team_view(seen.memories))

    def unroll(self, problem: Problem, episode: Episode) -> Float[Array, "rounds ..."]:
        """Scores at every prefix of an episode up to its stop; rows behind it are 0."""
        agents = jnp.arange(problem.agents)

        def read(state: PyTree, memories: PyTree) -> tuple[PyTree, Float[Array, "..."]]:
            return self.network.step(state, problem.team_view(memories))

        def advance(number: Int[Array, ""], carry: tuple) -> tuple:
            memories, state, found = carry
            acted = jnp.minimum(episode.actions[number - 1], jnp.asarray(problem.actions - 1, episode.actions.dtype))
            observation = jax.tree.map(lambda x: x[number], episode.observations)
            memories = jax.vmap(problem.remember)(memories, agents, acted, observation)
            state, scores = read(state, memories)
            return memories, state, found.at[number].set(scores)

        memories = jax.vmap(problem.memory)(agents, jax.tree.map(lambda x: x[0], episode.observations))
        state, scores = read(self.network.start(), memories)
        found = jnp.zeros((episode.actions.shape[0], *scores.shape), scores.dtype).at[0].set(scores)
        return jax.lax.fori_loop(1, episode.stop + 1, advance, (memories, state, found))[2]


class BeliefInference(eqx.Module):
    """A posterior that is carried along as a belief, by whatever rule."""

    kind: ClassVar[str]

    @abstractmethod
    def belief(self, problem: Any, first: PyTree = None) -> PyTree:
        """Before any data, or after the first observation."""

    @abstractmethod
    def update(self, problem: Any, belief: PyTree, actions: Integer[Array, "agents"], observation: PyTree) -> PyTree:
        """After one more round of everyone."""

    @abstractmethod
    def scores(self, problem: Any, belief: PyTree) -> Float[Array, "..."]:
        """What it says of the hypotheses."""

    def start(self, problem: Problem) -> PyTree:
        """The prior."""
        return self.belief(problem)

    def step(self, problem: Problem, state: PyTree, seen: Round) -> tuple[PyTree, Float[Array, "..."]]:
        """Scores after one more round of everyone."""
        belief = jax.lax.cond(
            seen.number == 0,
            lambda: self.belief(problem, seen.observation),
            lambda: self.update(problem, state, jnp.maximum(seen.actions, 0), seen.observation),
        )
        return belief, self.scores(problem, belief)

    def unroll(self, problem: Problem, episode: Episode) -> Float[Array, "rounds ..."]:
        """Scores at every prefix of an episode up to its stop; rows behind it are 0."""

        def update(number: Int[Array, ""], carry: tuple) -> tuple:
            belief, found = carry
            acted = jnp.minimum(episode.actions[number - 1].astype(jnp.int32), problem.actions - 1)
            belief = self.update(problem, belief, acted, jax.tree.map(lambda x: x[number], episode.observations))
            return belief, found.at[number].set(self.scores(problem, belief))

        # one belief at a time: those of all rounds side by side may not fit the memory
        belief = self.belief(problem, jax.tree.map(lambda x: x[0], episode.observations))
        scores = self.scores(problem, belief)
        found = jnp.zeros((episode.actions.shape[0], *scores.shape), scores.dtype).at[0].set(scores)
        return jax.lax.fori_loop(1, episode.stop + 1, update, (belief, found))[1]


class ExactInference(BeliefInference):
    """The posterior by Bayes' rule, for problems that have it."""

    kind: ClassVar[str] = "exact"

    def belief(self, problem: Problem, first: PyTree = None) -> PyTree:
        """The problem's."""
        return problem.belief(first)

    def update(
        self, problem: Problem, belief: PyTree, actions: Integer[Array, "agents"], observation: PyTree
    ) -> PyTree:
        """By the problem."""
        return problem.update_belief(belief, actions, observation)

    def scores(self, problem: Problem, belief: PyTree) -> Float[Array, "..."]:
        """Log-probabilities, or log-odds."""
        return problem.log_posterior(belief)


class LearnedStop(eqx.Module):
    """Any agent's own STOP."""

    kind: Literal["learned"] = eqx.field(static=True, default="learned")


class FixedLength(eqx.Module):
    """STOP after a number of rounds of data."""

    rounds: int = eqx.field(static=True)
    kind: Literal["length"] = eqx.field(static=True, default="length")


class Threshold(eqx.Module):
    """STOP once the inference is this sure; it reads everyone's data."""

    level: float = eqx.field(static=True)
    kind: Literal["threshold"] = eqx.field(static=True, default="threshold")


Stop = LearnedStop | FixedLength | Threshold
TeamInference = NetworkInference | BeliefInference


class _Minds(NamedTuple):
    policy: PyTree
    inference: PyTree


class Behaviour(eqx.Module):
    """Policy and stop together, as a rollout plays them."""

    problem: Problem
    policy: Any
    stop: Stop
    inference: TeamInference

    @property
    def takes(self) -> str:
        """As the policy does."""
        return takes(self.policy)

    def start(self) -> PyTree:
        """No history."""
        watching = self.inference.start(self.problem) if isinstance(self.stop, Threshold) else ()
        return _Minds(self.policy.start(), watching)

    def decide(
        self, state: _Minds, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[_Minds, Float[Array, "agents choices"]]:
        """The policy's scores, with STOP forced or forbidden unless it is the agents' own."""
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
