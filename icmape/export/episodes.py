"""Episodes with JAX's scores of every round, as the reference for other runtimes."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PyTree

from icmape.play.missing import Marks, received
from icmape.play.policy import LocalPolicy
from icmape.play.readings import Gate
from icmape.play.rollout import Episode, action_type, executed, play_greedy
from icmape.play.stop import Behaviour, LearnedStop, Threshold
from icmape.play.team import Team, decide
from icmape.problem.unreliable import Received

BATCH = 100
MOST_DRAWN = 4.0  # above the least, of readings without an upper limit
MARKED = 0.8  # share of invented actions that are executed, and of their readings that arrive


class Played(NamedTuple):
    """An episode, and what JAX computes from it. Scores are None where no agent can act alone."""

    actions: np.ndarray  # rounds agents, without that of the stop
    observations: list[np.ndarray]  # arrays of (rounds + 1, agents, ...)
    scores: np.ndarray | None  # rounds + 1, agents, choices
    offered: np.ndarray | None  # rounds + 1, agents, actions
    answer: np.ndarray  # the inference's scores at the end
    acted: np.ndarray  # rounds, agents: false where an agent did nothing
    arrived: np.ndarray  # rounds, agents: false where a reading is missing


def acts_alone(team: Team) -> bool:
    """Whether its agents decide from their own data."""
    return isinstance(team.policy, LocalPolicy) and not isinstance(team.stop, Threshold)


def reference_episodes(team: Team, count: int, seed: int) -> Iterator[Played]:
    """Greedy episodes in worlds of the problem; without worlds, random readings of random actions.

    Of a team of an unreliable problem, with what failed.
    """
    keys = jax.random.split(jax.random.key(seed), count)
    for first in range(0, count, BATCH):
        batch = keys[jnp.minimum(jnp.arange(first, first + BATCH), count - 1)]
        size = min(BATCH, count - first)
        episodes = _played(team, batch) if team.problem.has_worlds else _invented(team, size, seed + first)
        found = jax.tree.map(np.asarray, _replayed(team, episodes))
        for row in range(size):
            yield _cut(team, *(jax.tree.map(lambda x, row=row: x[row], each) for each in (episodes, found)))


@eqx.filter_jit
def _played(team: Team, keys: Key[Array, "worlds"]) -> Episode:
    behaviour: Behaviour = team.behaviour()
    return play_greedy(team.problem, behaviour, keys)


def _invented(team: Team, count: int, seed: int) -> Episode:
    """Episodes of random actions and random readings in their ranges, ended at random."""
    problem, gate, rng = team.problem, Gate(team.problem), np.random.default_rng(seed)
    horizon = problem.horizon
    arrays = []
    for part in gate.parts:
        low = np.maximum(part.limits.low, -MOST_DRAWN)
        high = np.minimum(part.limits.high, low + MOST_DRAWN)
        shape = (count, horizon, problem.agents, *part.shape)
        drawn = low + (high - low) * rng.random(shape)
        drawn = np.where(part.limits.whole, np.round(drawn), drawn).astype(part.dtype)
        if not problem.shows_first:
            drawn[:, 0] = 0
        arrays.append(drawn)
    acted, came = rng.random((2, count, horizon, problem.agents)) < MARKED
    seen = jax.tree.map(jnp.asarray, gate.structured(arrays))
    return Episode(
        jnp.asarray(rng.integers(0, problem.actions, (count, horizon, problem.agents)), action_type(problem)),
        received(problem, seen, Marks(acted, acted & came)),
        jnp.zeros((count, horizon), bool),
        jnp.asarray(rng.integers(0, horizon, count), jnp.int32),
        jnp.zeros(count, jnp.int8),
        jnp.ones(count, bool),
    )


@eqx.filter_jit
def _replayed(team: Team, episodes: Episode) -> tuple[PyTree, Array]:
    """Scores and masks of every agent in every round, and the inference's scores at the stop."""
    alone = acts_alone(team)

    def one(episode: Episode) -> tuple[PyTree, Array]:
        answer = team.inference.unroll(team.problem, episode)[episode.stop]
        return (_every_round(team, episode) if alone else None), answer

    return jax.lax.map(one, episodes)


def _every_round(team: Team, episode: Episode) -> tuple[Array, Array]:
    problem, agents = team.problem, jnp.arange(team.problem.agents)

    def think(minds: PyTree, memories: PyTree, number: Array, actions: Array, seen: PyTree) -> Any:
        return jax.vmap(lambda mind, agent, memory, action, reading: decide(
            team, mind, agent, memory, number, action, reading
        ))(minds, agents, memories, actions, seen)  # fmt: skip

    def advance(carry: tuple, row: tuple) -> tuple:
        minds, memories = carry
        number, actions, seen = row
        acted = executed(problem, actions).astype(jnp.int32)
        memories = jax.vmap(problem.update_memory)(memories, agents, acted, seen)
        thought = think(minds, memories, number, acted, seen)
        return (thought.state, memories), (thought.scores, thought.offered)

    first = jax.tree.map(lambda x: x[0], episode.observations)
    memories = jax.vmap(problem.init_memory)(agents, first)
    minds = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(agents), *jnp.shape(x))), team.policy.start_agent())
    start = think(minds, memories, jnp.int32(0), jnp.full(len(agents), -1), first)
    rows = (
        jnp.arange(1, problem.horizon),
        episode.actions[:-1],
        jax.tree.map(lambda x: x[1:], episode.observations),
    )
    later: tuple[Array, Array] = jax.lax.scan(advance, (start.state, memories), rows)[1]
    return _joined(start.scores, later[0]), _joined(start.offered, later[1])


def _joined(first: Array, later: Array) -> Array:
    return jnp.concatenate([first[None], later])


def _cut(team: Team, episode: Episode, found: tuple[Any, np.ndarray]) -> Played:
    rounds = int(episode.stop)
    decided, answer = found
    scores, offered = (None, None) if decided is None else (part[: rounds + 1] for part in decided)
    actions = np.asarray(episode.actions[:rounds]).astype(np.int32)
    seen: Any = episode.observations
    acted: Any = np.ones(actions.shape, bool)
    arrived = acted
    if isinstance(seen, Received):
        acted, arrived, seen = seen.acted[1 : rounds + 1], seen.arrived[1 : rounds + 1], seen.reading
    observations = [np.asarray(leaf[: rounds + 1]) for leaf in jax.tree.leaves(seen)]
    return Played(actions, observations, scores, offered, answer, acted, arrived)


def choices(team: Team, scores: np.ndarray, offered: np.ndarray) -> np.ndarray:
    """What agents choose from these scores: the number after the last action is STOP (rounds, agents)."""
    acting = np.where(offered, scores[..., :-1], -np.inf)
    best = acting.argmax(-1)
    if not isinstance(team.stop, LearnedStop):
        return best
    top = np.take_along_axis(acting, best[..., None], -1)[..., 0]
    return np.where(scores[..., -1] > top, team.problem.actions, best)
