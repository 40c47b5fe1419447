"""Imitation of a teacher: its choices in the histories of the team are labels, with a weight that decays."""

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
from icmape.problem.check import tree_bytes

AT_ONCE = 2**31  # bytes of the states of a teacher
NEVER = -1e9  # score of masked choices


class Labels(NamedTuple):
    """The choices of a teacher in stored episodes, and their weight in the actor loss."""

    choices: Int[Array, "batch rounds agents"]
    options: Bool[Array, "batch choices"]  # choices of the teacher; without STOP if it never stops
    share: Float[Array, "batch"]  # equal for all episodes


class WithoutStop(LocalPolicy):
    """A teacher without STOP: only its actions are imitated."""

    policy: LocalPolicy

    @property
    def agents(self) -> int:
        """Number of agents."""
        return self.policy.agents

    def start_agent(self) -> PyTree:
        """State of the teacher for one agent."""
        return self.policy.start_agent()

    def start(self) -> PyTree:
        """States of the teacher for all agents."""
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
        """Scores of the teacher, without STOP."""
        state, scores = self.policy.decide_agent(state, agent, view, number, key=key)
        return state, scores.at[-1].set(-jnp.inf)

    def decide(
        self, state: PyTree, seen: Round, *, key: Key[Array, ""]
    ) -> tuple[PyTree, Float[Array, "agents choices"]]:
        """Scores of the teacher for all agents, without STOP."""
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
    """The choices of the teacher in every round of many episodes; not computed once its weight is 0."""
    if teacher is None:
        return None
    share = config.teacher.weight * jnp.maximum(1.0 - progress / config.teacher.until, 0.0)
    rounds = jnp.where(share > 0, jnp.max(episode.stop) + 1, 0)
    together = max(1, AT_ONCE // max(1, tree_bytes(jax.eval_shape(teacher.start))))
    score_episode = lambda row: policy_scores(problem, teacher, row[0], row[1], rounds)  # noqa: E731
    if together < episode.stop.shape[0]:
        scores = jax.lax.map(score_episode, (episode, seen), batch_size=together)
    else:
        scores = jax.vmap(score_episode)((episode, seen))
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
    """The weighted mean of the actor loss and the imitation loss, the mean of -log π(choice of the teacher)."""
    if labels is None:
        return loss
    share = jnp.mean(labels.share)
    options = jnp.where(labels.options[:, None, None, :], scores, NEVER)
    imitation = -masked_mean(chosen(jax.nn.log_softmax(options), labels.choices), counted)
    return (1.0 - share) * loss + share * imitation
