"""A policy to learn from at first: what it would do in the team's own histories is a label, whose share fades."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PyTree

from icmape.errors import UserError
from icmape.imports import call_own, is_path
from icmape.learning.config import Config
from icmape.learning.parts import LearnedStop
from icmape.learning.policy import LocalPolicy, Policy, Round
from icmape.learning.returns import masked_mean
from icmape.learning.rollout import Episode, Histories, policy_scores
from icmape.learning.scores import choices, chosen
from icmape.problems import Problem, View

AT_ONCE = 2**31  # bytes that a guide's beliefs may take
NEVER = -1e9  # a score so low that it takes no part


class Labels(NamedTuple):
    """A guide's choices in stored episodes, and their share in the actors' loss."""

    choices: Int[Array, "batch rounds agents"]
    options: Bool[Array, "batch choices"]  # what it chooses from: a guide that never stops says nothing about STOP
    share: Float[Array, "batch"]  # the same for all


def find_guide(problem: Problem, config: Config, given: LocalPolicy | None = None) -> LocalPolicy | None:
    """The policy that was given, or that the settings name: a reference's, that of a team file, or module:Class."""
    name = config.guide.policy
    if given is None and not name:
        return None
    if given is not None or is_path(name):
        found = call_own(name, "guide.policy", problem) if given is None else given
        return _followed(config, *_own_guide(problem, name or type(given).__name__, found))
    from icmape.references.registry import REFERENCES, guiding_team, references_for  # heavy, and seldom needed
    from icmape.teams import load

    try:
        team = (
            guiding_team(name, problem, config.delta, config.guide.stop) if name in REFERENCES else load(name, problem)
        )
    except UserError as error:
        raise UserError(
            f"guide.policy {name!r} cannot guide this training: {error}. Without a guide: --algorithm ppo; guides are "
            f"files of teams for this problem, module:Class of your own, and the references "
            f"{', '.join(references_for(problem)) or '(none)'}"
        ) from error
    return _followed(config, _local(name, team.policy), isinstance(team.stop, LearnedStop))


def _followed(config: Config, policy: LocalPolicy, stops: bool) -> LocalPolicy:
    return policy if config.guide.stop and stops else WithoutStop(policy)


def _local(name: str, policy: Any) -> LocalPolicy:
    if not isinstance(policy, LocalPolicy):
        raise UserError(f"the guide {name} reads everyone's data: agents that see only their own cannot follow it")
    return policy


def _own_guide(problem: Problem, name: str, found: Any) -> tuple[LocalPolicy, bool]:
    """A policy of the caller's own, or that of a team, and whether its STOP means anything."""
    from icmape.teams import Team
    from icmape.teams.checks import check_policy

    if isinstance(found, Team):
        policy, stops = _local(name, found.policy), isinstance(found.stop, LearnedStop)
    elif isinstance(found, LocalPolicy):
        policy, stops = found, bool(getattr(found, "stops", True))
    else:
        raise UserError(
            f"the guide {name} is {type(found).__name__}; expected an icmape.LocalPolicy or a Team, or what gives one "
            "when it is called with the problem"
        )
    check_policy(problem, policy, f"the guide {name}")
    return policy, stops


class WithoutStop(LocalPolicy):
    """A guide that leaves the stop to others: only its actions are followed."""

    policy: LocalPolicy

    @property
    def agents(self) -> int:
        """As many as it guides."""
        return self.policy.agents

    def start_agent(self) -> PyTree:
        """Its own state."""
        return self.policy.start_agent()

    def start(self) -> PyTree:
        """Its own state for all."""
        return self.policy.start()

    def decide_agent(
        self, state: PyTree, agent: Integer[Array, ""], view: View, number: Integer[Array, ""], *, key: Key[Array, ""]
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


def guide_labels(
    problem: Problem,
    config: Config,
    guide: Policy | None,
    episode: Episode,
    seen: Histories,
    progress: Float[Array, ""],
) -> Labels | None:
    """What the guide would choose in every round of many episodes, if there is one; looked up while it counts."""
    if guide is None:
        return None
    share = config.guide.share * jnp.maximum(1.0 - progress / config.guide.until, 0.0)
    rounds = jnp.where(share > 0, jnp.max(episode.stop) + 1, 0)
    state = jax.tree.leaves(jax.eval_shape(guide.start))
    together = max(1, AT_ONCE // max(1, sum(leaf.size * leaf.dtype.itemsize for leaf in state)))
    say = lambda row: policy_scores(problem, guide, row[0], row[1], rounds)  # noqa: E731
    if together < episode.stop.shape[0]:
        scores = jax.lax.map(say, (episode, seen), batch_size=together)
    else:
        scores = jax.vmap(say)((episode, seen))
    wanted = jnp.argmax(jnp.where(choices(config, seen), scores, -jnp.inf), axis=-1)
    options = jnp.ones(problem.actions + 1, bool).at[-1].set(not isinstance(guide, WithoutStop))
    batch = wanted.shape[:1]
    return Labels(wanted, jnp.broadcast_to(options, (*batch, *options.shape)), jnp.broadcast_to(share, batch))


def with_guide(
    loss: Float[Array, ""],
    scores: Float[Array, "batch rounds agents choices"],
    labels: Labels | None,
    counted: Bool[Array, "batch rounds agents"],
) -> Float[Array, ""]:
    """The actors' own loss and, for its share, the mean of -log π(what the guide would choose)."""
    if labels is None:
        return loss
    share = jnp.mean(labels.share)
    options = jnp.where(labels.options[:, None, None, :], scores, NEVER)
    unlike = -masked_mean(chosen(jax.nn.log_softmax(options), labels.choices), counted)
    return (1.0 - share) * loss + share * unlike
