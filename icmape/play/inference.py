"""Inference of a team: a posterior over the hypotheses from the data of all agents, round by round."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, PyTree

from icmape.networks import InferenceNetwork
from icmape.play.policy import Round
from icmape.play.rollout import Episode, executed
from icmape.problem import Problem


class NetworkInference(eqx.Module):
    """The posterior of a trained network."""

    network: InferenceNetwork
    kind: Literal["network"] = eqx.field(static=True, default="network")

    def start(self, problem: Problem) -> PyTree:
        """The state before any data."""
        return self.network.start()

    def step(self, problem: Problem, state: PyTree, seen: Round) -> tuple[PyTree, Float[Array, "..."]]:
        """Scores over the hypotheses after one more round of all agents."""
        return self.network.step(state, problem.team_features(seen.memories))

    def unroll(self, problem: Problem, episode: Episode) -> Float[Array, "rounds ..."]:
        """Scores at every prefix of an episode up to its stop; later rows are 0."""
        agents = jnp.arange(problem.agents)

        def read(state: PyTree, memories: PyTree) -> tuple[PyTree, Float[Array, "..."]]:
            return self.network.step(state, problem.team_features(memories))

        def advance(number: Int[Array, ""], carry: tuple) -> tuple:
            memories, state, rows = carry
            acted = executed(problem, episode.actions[number - 1])
            observation = jax.tree.map(lambda x: x[number], episode.observations)
            memories = jax.vmap(problem.update_memory)(memories, agents, acted, observation)
            state, scores = read(state, memories)
            return memories, state, rows.at[number].set(scores)

        memories = jax.vmap(problem.init_memory)(agents, jax.tree.map(lambda x: x[0], episode.observations))
        state, scores = read(self.network.start(), memories)
        rows = jnp.zeros((episode.actions.shape[0], *scores.shape), scores.dtype).at[0].set(scores)
        return jax.lax.fori_loop(1, episode.stop + 1, advance, (memories, state, rows))[2]


class BeliefInference(eqx.Module):
    """A posterior that is computed from a belief, updated round by round."""

    kind: ClassVar[str]

    @abstractmethod
    def belief(self, problem: Any, first: PyTree = None) -> PyTree:
        """The belief before any data, or after the first observation."""

    @abstractmethod
    def update(self, problem: Any, belief: PyTree, actions: Integer[Array, "agents"], observation: PyTree) -> PyTree:
        """The belief after one more round of all agents."""

    @abstractmethod
    def scores(self, problem: Any, belief: PyTree) -> Float[Array, "..."]:
        """Scores over the hypotheses."""

    def start(self, problem: Problem) -> PyTree:
        """The prior."""
        return self.belief(problem)

    def step(self, problem: Problem, state: PyTree, seen: Round) -> tuple[PyTree, Float[Array, "..."]]:
        """Scores after one more round of all agents."""
        belief = jax.lax.cond(
            seen.number == 0,
            lambda: self.belief(problem, seen.observation),
            lambda: self.update(problem, state, jnp.maximum(seen.actions, 0), seen.observation),
        )
        return belief, self.scores(problem, belief)

    def unroll(self, problem: Problem, episode: Episode) -> Float[Array, "rounds ..."]:
        """Scores at every prefix of an episode up to its stop; later rows are 0."""

        def update(number: Int[Array, ""], carry: tuple) -> tuple:
            belief, rows = carry
            acted = executed(problem, episode.actions[number - 1].astype(jnp.int32))
            belief = self.update(problem, belief, acted, jax.tree.map(lambda x: x[number], episode.observations))
            return belief, rows.at[number].set(self.scores(problem, belief))

        # one belief at a time: the beliefs of all rounds may not fit into memory
        belief = self.belief(problem, jax.tree.map(lambda x: x[0], episode.observations))
        scores = self.scores(problem, belief)
        rows = jnp.zeros((episode.actions.shape[0], *scores.shape), scores.dtype).at[0].set(scores)
        return jax.lax.fori_loop(1, episode.stop + 1, update, (belief, rows))[1]


class ExactInference(BeliefInference):
    """The exact posterior by Bayes' rule, for problems that provide it."""

    kind: ClassVar[str] = "exact"

    def belief(self, problem: Problem, first: PyTree = None) -> PyTree:
        """The belief of the problem."""
        return problem.belief(first)

    def update(
        self, problem: Problem, belief: PyTree, actions: Integer[Array, "agents"], observation: PyTree
    ) -> PyTree:
        """The belief of the problem after one more round."""
        return problem.update_belief(belief, actions, observation)

    def scores(self, problem: Problem, belief: PyTree) -> Float[Array, "..."]:
        """Log-probabilities, or log-odds."""
        return problem.log_posterior(belief)


TeamInference = NetworkInference | BeliefInference
