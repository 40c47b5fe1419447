"""A policy to learn from at first: what it would do in the team's own histories is a label, whose share fades."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.learning.config import Config
from icmape.learning.returns import masked_mean
from icmape.learning.scores import choices, chosen
from icmape.play.policy import LocalPolicy, Policy, Round
from icmape.play.rollout import Episode, Histories, policy_scores
from icmape.problem import Features, Problem

AT_ONCE = 2**31  # bytes that a teacher's beliefs may take
NEVER = -1e9  # a score so low that it takes no part


class Labels(NamedTuple):
    """A teacher's choices in stored episodes, and their share in the actors' loss."""

    choices: Int[Array, "batch rounds agents"]
    options: Bool[Array, "batch choices"]  # what it chooses from: a teacher that never stops says nothing about STOP
    share: Float[Array, "batch"]  # the same for all


class WithoutStop(LocalPolicy):
    """A teacher that leaves the stop to others: only its actions are followed."""

    policy: LocalPolicy

    @property
    def agents(self) -> int:
        """As many as it teachers."""
        return self.policy.agents

    def start_agent(self) -> PyTree:
        """Its own state."""
        return self.policy.start_agent()

    def start(self) -> PyTree:
        """Its own state for all."""
        return self.policy.start()

    def decide_agent(
        self,
        state: PyTree,
        agent: Integer[Array, ""],
        view: Features,
        number: Integer[Array, ""],
        *,
        key: Key[Array, ""],
    ) -> tuple[PyTree, Float[Array, "choices"]]:
        """Its own scores, without STOP."""
        state, scores = self.policy.decide_agent(state, agent, view, number, key=key)
        return state, scores.at[-1].set(-jnp.inf)

    def decide(
        self, state: PyTree, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[PyTree, Float[Array, "agents choices"]]:
        """The same for all, in whatever way it decides for all."""
        state, scores = self.policy.decide(state, seen, key=key)
        return state, scores.at[:, -1].set(-jnp.inf)


def teacher_labels(
    problem: Problem,
    config: Config,
    teacher: Policy | None,
    episode: Episode,
    seen: Histories,
    progress: Float[Array, ""],
) -> Labels | None:
    """What the teacher would choose in every round of many episodes, if there is one; looked up while it counts."""
    if teacher is None:
        return None
    share = config.teacher.weight * jnp.maximum(1.0 - progress / config.teacher.until, 0.0)
    rounds = jnp.where(share > 0, jnp.max(episode.stop) + 1, 0)
    state = jax.tree.leaves(jax.eval_shape(teacher.start))
    together = max(1, AT_ONCE // max(1, sum(leaf.size * leaf.dtype.itemsize for leaf in state)))
    say = lambda row: policy_scores(problem, teacher, row[0], row[1], rounds)  # noqa: E731
    if together < episode.stop.shape[0]:
        scores = jax.lax.map(say, (episode, seen), batch_size=together)
    else:
        scores = jax.vmap(say)((episode, seen))
    wanted = jnp.argmax(jnp.where(choices(config, seen), scores, -jnp.inf), axis=-1)
    options = jnp.ones(problem.actions + 1, bool).at[-1].set(not isinstance(teacher, WithoutStop))
    batch = wanted.shape[:1]
    return Labels(wanted, jnp.broadcast_to(options, (*batch, *options.shape)), jnp.broadcast_to(share, batch))


def with_teacher(
    loss: Float[Array, ""],
    scores: Float[Array, "batch rounds agents choices"],
    labels: Labels | None,
    counted: Bool[Array, "batch rounds agents"],
) -> Float[Array, ""]:
    """The actors' own loss and, for its share, the mean of -log π(what the teacher would choose)."""
    if labels is None:
        return loss
    share = jnp.mean(labels.share)
    options = jnp.where(labels.options[:, None, None, :], scores, NEVER)
    unlike = -masked_mean(chosen(jax.nn.log_softmax(options), labels.choices), counted)
    return (1.0 - share) * loss + share * unlike
