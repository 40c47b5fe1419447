"""A policy to learn from at first: what it would do in the team's own histories is a label, whose weight fades."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from icmape.errors import UserError
from icmape.learning.config import Config
from icmape.learning.policy import LocalPolicy, Policy, Round
from icmape.learning.returns import masked_mean
from icmape.learning.rollout import Episode, Histories
from icmape.problems import Problem


def find_guide(problem: Problem, config: Config) -> LocalPolicy | None:
    """The policy that the settings name: a reference's, or that of a team file. It must be one that agents could follow."""
    name = config.guide.policy
    if not name:
        return None
    from icmape.references.registry import REFERENCES, reference_team  # heavy, and seldom needed
    from icmape.teams import load

    team = reference_team(name, problem, delta=config.delta) if name in REFERENCES else load(name, problem)
    if not isinstance(team.policy, LocalPolicy):
        raise UserError(f"the guide {name} reads everyone's data: agents that see only their own cannot follow it")
    return team.policy


def policy_scores(
    problem: Problem, policy: Policy, episode: Episode, seen: Histories, rounds: Int[Array, ""] | int
) -> Float[Array, "rounds agents choices"]:
    """What a policy of local scope says in the first rounds of a stored episode, whoever played it; then 0."""

    def decide(number: Int[Array, ""], carry: tuple) -> tuple:
        state, found = carry
        before = jnp.where(number == 0, -1, episode.actions[number - 1].astype(jnp.int32))
        observation = jax.tree.map(lambda x: x[number], episode.observations)
        own = jax.tree.map(lambda x: x[:, number], seen.local)
        state, scores = policy.decide(state, Round(number, own, before, observation, ()), key=jax.random.key(0))
        return state, found.at[number].set(scores)

    nothing = jnp.zeros((problem.horizon, problem.agents, problem.actions + 1))
    return jax.lax.fori_loop(0, rounds, decide, (policy.start(), nothing))[1]


def guide_weight(config: Config, progress: Float[Array, ""]) -> Float[Array, ""]:
    """From the full weight to none, linearly."""
    return config.guide.weight * jnp.maximum(1.0 - progress / config.guide.until, 0.0)


def guided_choices(
    problem: Problem, guide: Policy, episode: Episode, seen: Histories, wanted: Bool[Array, ""]
) -> Int[Array, "batch rounds agents"]:
    """What the guide would choose in every round of many episodes; looked up only where wanted."""
    rounds = jnp.where(wanted, jnp.max(episode.stop) + 1, 0)
    scores = jax.vmap(lambda e, s: policy_scores(problem, guide, e, s, rounds))(episode, seen)
    allowed = jnp.concatenate([seen.allowed, jnp.ones_like(seen.allowed[..., :1])], axis=-1)
    return jnp.argmax(jnp.where(allowed, scores, -jnp.inf), axis=-1)


def guide_loss(
    scores: Float[Array, "batch rounds agents choices"],
    choices: Int[Array, "batch rounds agents"],
    counted: Bool[Array, "batch rounds agents"],
) -> Float[Array, ""]:
    """Mean of -log π(what the guide would choose)."""
    found = jnp.take_along_axis(jax.nn.log_softmax(scores), choices[..., None], axis=-1)[..., 0]
    return -masked_mean(found, counted)
