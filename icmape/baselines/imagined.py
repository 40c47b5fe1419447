"""Expected information of an action, estimated with worlds from the prior, for problems with an exact posterior.

A fixed set of worlds is sampled once. In each round a few are resampled by the posterior of their hypotheses, an action
is tried in each with `problem.step`, and the observation updates the exact belief. Properties of a world besides its
hypothesis (means, intensities) keep their prior given the hypothesis: an approximation, unless there are none. States
of worlds, such as places of agents, are advanced with the actions of the team.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer, Key, PyTree

from icmape.problem import Problem
from icmape.problem.check import tree_bytes

WORLDS = 1024  # in the fixed set
TRIED = 32  # worlds tried in a round
BYTES = 2**24  # limit for the fixed set
FEWEST = 64
SEED = 0x1DEA


class Imagined(eqx.Module):
    """Worlds from the prior, and the log prior probabilities of their hypotheses."""

    problem: Problem
    worlds: Any  # leading axis of worlds
    log_prior: Float[Array, "worlds"]

    @property
    def count(self) -> int:
        """Number of worlds."""
        return self.log_prior.shape[0]

    def start(self) -> PyTree:
        """The state of each world before round 0."""
        keys = jax.random.split(jax.random.key(SEED), self.count)
        return jax.vmap(lambda world, key: self.problem.start(world, key=key)[0])(self.worlds, keys)

    def moved(self, states: PyTree, actions: Integer[Array, "worlds agents"], number: Integer[Array, ""]) -> PyTree:
        """The state of each world after a round with these actions."""
        if not jax.tree.leaves(states):
            return states
        keys = jax.random.split(_key(number, 0), self.count)
        return jax.vmap(lambda w, s, a, k: self.problem.step(w, s, a, key=k)[0])(self.worlds, states, actions, keys)

    def others(self, number: Integer[Array, ""]) -> Int[Array, "worlds agents"]:
        """Random actions, for agents whose actions are unknown."""
        shape = self.count, self.problem.agents
        return jax.random.randint(_key(number, 1), shape, 0, self.problem.actions)

    def likely(self, scores: Float[Array, "..."], number: Integer[Array, ""]) -> Int[Array, "tried"]:
        """Indices of worlds, by systematic resampling with the posterior of their hypotheses."""
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
        """Minus the entropy (nats) of the posterior after the next round, in the mean over worlds.

        `update` gives the belief after a joint action and its observation. All actions share the same random keys.
        """
        keys = jax.random.split(_key(number, 3), TRIED)

        def try_world(index: Int[Array, ""], joint: Int[Array, "agents"], key: Key[Array, ""]) -> Float[Array, ""]:
            world, state = jax.tree.map(lambda x: x[index], (self.worlds, states))
            _, observation = self.problem.step(world, state, joint, key=key)
            return self.certainty(self.problem.log_posterior(update(joint, observation)))

        return jnp.mean(jax.vmap(try_world)(drawn, actions, keys))

    def certainty(self, scores: Float[Array, "..."]) -> Float[Array, ""]:
        """Minus the entropy of a posterior, summed over its parts."""
        logs = jnp.maximum(self.problem.hypotheses.log_probabilities(scores), -80.0)  # 0 · log 0 is 0
        return jnp.sum(jnp.exp(logs) * logs)


def imagine(problem: Problem) -> Imagined:
    """Sample the worlds; fewer if they are large."""
    key = jax.random.key(SEED)
    size = tree_bytes(jax.eval_shape(lambda: problem.sample(key=key)))
    count = max(FEWEST, min(WORLDS, BYTES // max(size, 1)))
    worlds = eqx.filter_jit(jax.vmap(lambda key: problem.sample(key=key)))(jax.random.split(key, count))
    order = jnp.lexsort(worlds.hypothesis.reshape(count, -1).T)  # so that resampling is stratified by hypothesis
    worlds = jax.tree.map(lambda x: x[order], worlds)
    scores = problem.log_posterior(problem.belief())
    log_prior = jax.vmap(lambda world: problem.hypotheses.log_likelihood(scores, world.hypothesis))(worlds)
    return Imagined(problem, worlds, jnp.maximum(log_prior, -1e9))


def _key(number: Integer[Array, ""], purpose: int) -> Key[Array, ""]:
    """A key that is equal in every episode, so that a rule is a function of its observations."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(SEED + 1), purpose), number)
