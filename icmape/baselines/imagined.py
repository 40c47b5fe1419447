"""What a reading is expected to tell, for any problem with an exact posterior: by worlds drawn from the prior.

A fixed set of worlds is drawn once. They count by the posterior of their hypothesis, a few are drawn by that, an action
is tried in each with `problem.step`, and what it returns updates the exact belief. What a world holds besides its
hypothesis (means, intensities) is thus as likely as by the prior, given the hypothesis: an approximation, unless the
hypothesis is all there is. Worlds with a state, such as places of agents, are moved along with the team's own actions.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, Key, PyTree

from icmape.problem import Problem

WORLDS = 1024  # that are drawn
TRIED = 32  # of them in a round
BYTES = 2**24  # that they may take together
FEWEST = 64
SEED = 0x1DEA


class Imagined(eqx.Module):
    """Worlds from the prior, and how likely their hypotheses were."""

    problem: Problem
    worlds: Any  # leading axis of worlds
    log_prior: Float[Array, "worlds"]

    @property
    def count(self) -> int:
        """How many."""
        return self.log_prior.shape[0]

    def start(self) -> PyTree:
        """The state of each world before round 0."""
        keys = jax.random.split(jax.random.key(SEED), self.count)
        return jax.vmap(lambda world, key: self.problem.start(world, key=key)[0])(self.worlds, keys)

    def moved(self, states: PyTree, actions: Integer[Array, "worlds agents"], number: Integer[Array, ""]) -> PyTree:
        """The same after a round in which these actions were taken."""
        if not jax.tree.leaves(states):
            return states
        keys = jax.random.split(_key(number, 0), self.count)
        return jax.vmap(lambda w, s, a, k: self.problem.step(w, s, a, key=k)[0])(self.worlds, states, actions, keys)

    def others(self, number: Integer[Array, ""]) -> Int[Array, "worlds agents"]:
        """Random actions, for agents that nobody knows anything about."""
        shape = self.count, self.problem.agents
        return jax.random.randint(_key(number, 1), shape, 0, self.problem.actions)

    def likely(self, scores: Float[Array, "..."], number: Integer[Array, ""]) -> Int[Array, "tried"]:
        """Indices of worlds drawn evenly by the posterior of their hypotheses."""
        log_likelihood = jax.vmap(lambda world: self.problem.hypotheses.log_likelihood(scores, world.hypothesis))
        weights = jax.nn.softmax(jnp.maximum(log_likelihood(self.worlds), -1e9) - self.log_prior)
        places = (jax.random.uniform(_key(number, 2)) + jnp.arange(TRIED, dtype=jnp.float32)) / TRIED
        return jnp.minimum(jnp.searchsorted(jnp.cumsum(weights), places), self.count - 1)

    def worth(
        self,
        states: PyTree,
        drawn: Int[Array, "tried"],
        actions: Integer[Array, "tried agents"],
        number: Integer[Array, ""],
        update: Callable[[Int[Array, "agents"], PyTree], PyTree],
    ) -> Float[Array, ""]:
        """Expected certainty a round ahead: minus the entropy (nats) of the next posterior, in the mean over worlds.

        `update` makes a belief of the joint action and what it returned. Noise is the same whatever the action.
        """
        keys = jax.random.split(_key(number, 3), TRIED)

        def one(index: Int[Array, ""], joint: Int[Array, "agents"], key: Key[Array, ""]) -> Float[Array, ""]:
            world, state = jax.tree.map(lambda x: x[index], (self.worlds, states))
            _, observation = self.problem.step(world, state, joint, key=key)
            return self.certainty(self.problem.log_posterior(update(joint, observation)))

        return jnp.mean(jax.vmap(one)(drawn, actions, keys))

    def certainty(self, scores: Float[Array, "..."]) -> Float[Array, ""]:
        """Minus the entropy of a posterior (of its parts together, where it has parts)."""
        logs = jnp.maximum(self.problem.hypotheses.log_probabilities(scores), -80.0)  # 0 · log 0 is 0
        return jnp.sum(jnp.exp(logs) * logs)


def imagine(problem: Problem) -> Imagined:
    """Draw the worlds; fewer where they are large."""
    key = jax.random.key(SEED)
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(jax.eval_shape(lambda: _draw(problem, key))))
    count = max(FEWEST, min(WORLDS, BYTES // max(size, 1)))
    worlds = eqx.filter_jit(jax.vmap(lambda key: _draw(problem, key)))(jax.random.split(key, count))
    order = jnp.lexsort(worlds.hypothesis.reshape(count, -1).T)  # so that even draws are even over hypotheses
    worlds = jax.tree.map(lambda x: x[order], worlds)
    scores = problem.log_posterior(problem.belief())
    log_prior = jax.vmap(lambda world: problem.hypotheses.log_likelihood(scores, world.hypothesis))(worlds)
    return Imagined(problem, worlds, jnp.maximum(log_prior, -1e9))


def _draw(problem: Problem, key: Key[Array, ""]) -> Any:
    return problem.sample(key=key)


def _key(number: Integer[Array, ""], purpose: int) -> Key[Array, ""]:
    """The same in every episode, so that a rule is a function of what was seen."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(SEED + 1), purpose), number)
