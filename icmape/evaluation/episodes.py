"""Playing a team on fresh worlds, and what is kept of each episode."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from icmape.learning.rollout import Episode, play_greedy
from icmape.problems import Problem
from icmape.teams import Behaviour, ExactInference, Team, TeamInference

STREAM = 0x0E7A1  # keeps evaluation's worlds apart from those of training with the same seed
BATCH = 1000


class Judged(NamedTuple):
    """What an inference said at every round of an episode; rows after the stop do not count."""

    confidence: Any  # episodes rounds
    correct: Any  # episodes rounds
    log_loss: Any  # episodes rounds


class Episodes(NamedTuple):
    """Played episodes, judged by the team's inference and by the exact posterior if there is one."""

    played: Episode
    team: Judged
    exact: Judged | None

    @property
    def exists(self) -> np.ndarray:
        """The rounds that took place, the stop included (episodes, rounds)."""
        return np.arange(self.team.correct.shape[1])[None] <= self.played.stop[:, None]

    def at_stop(self, column: np.ndarray) -> np.ndarray:
        """A column's value in the round each episode ended."""
        return column[np.arange(len(column)), self.played.stop]


def play(team: Team, episodes: int, seed: int, tick: Callable[[int], None] | None = None) -> Episodes:
    """Greedy episodes in fresh worlds of the team's problem. `tick` is told how many were played."""
    parts = []
    for keys in _batches(episodes, seed):
        part = _play_batch(team.problem, team.behaviour(), team.inference, keys)
        parts.append(jax.tree.map(np.asarray, part))
        if tick:
            tick(len(keys))
    whole = jax.tree.map(lambda *rows: np.concatenate(rows)[:episodes], *parts)
    return whole


def sample_truths(problem: Problem, worlds: int, seed: int) -> Array:
    """True hypotheses of fresh worlds that no episode is played in."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), STREAM + 1), worlds)
    return _truths(problem, keys)


@jax.jit
def _truths(problem: Problem, keys: Key[Array, "worlds"]) -> Array:
    return jax.vmap(lambda key: problem.sample(key=key).hypothesis)(keys)


def _batches(episodes: int, seed: int) -> Iterator[Key[Array, "worlds"]]:
    """Equal batches (one compiled program), the last one filled up; world i is the same whatever the batch size."""
    root = jax.random.fold_in(jax.random.key(seed), STREAM)
    size = min(BATCH, episodes)
    for first in range(0, episodes, size):
        yield jax.vmap(lambda i: jax.random.fold_in(root, i))(jnp.arange(first, first + size))


@eqx.filter_jit
def _play_batch(
    problem: Problem, behaviour: Behaviour, inference: TeamInference, keys: Key[Array, "worlds"]
) -> Episodes:
    """Takes a team's parts, not the team: where it comes from would compile it anew."""
    played = play_greedy(problem, behaviour, keys)
    exact = None
    if problem.posterior != "none":
        exact = jax.vmap(lambda e: _judge(problem, ExactInference().unroll(problem, e), e))(played)
    if isinstance(inference, ExactInference) and exact is not None:
        return Episodes(played, exact, exact)
    return Episodes(played, jax.vmap(lambda e: _judge(problem, inference.unroll(problem, e), e))(played), exact)


def _judge(problem: Problem, scores: Array, episode: Episode) -> Judged:
    space = problem.hypotheses
    return Judged(
        jax.vmap(space.confidence)(scores),
        jax.vmap(lambda s: space.correct(space.decide(s), episode.hypothesis))(scores),
        jax.vmap(lambda s: -space.log_likelihood(s, episode.hypothesis))(scores),
    )
