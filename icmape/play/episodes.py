"""Playing a team on fresh worlds, and what is kept of each episode."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from icmape.errors import UserError
from icmape.play.inference import ExactInference, TeamInference
from icmape.play.rollout import Episode, play_greedy
from icmape.play.stop import Behaviour
from icmape.play.team import Team
from icmape.problem import Problem, check_worlds

RESERVED = 2**30  # seeds from here on are for certificates: nothing else is played in their worlds
STREAM = 0x0E7A1  # keeps evaluation's worlds apart from those of training with the same seed
BATCH = 1000
SAMPLE = 1000  # episodes judged by a posterior that is costly
COSTLY = 2**20  # bytes of a belief, above which worlds are played a few at a time
LARGE = 2**22  # bytes of a belief, above which one at a time is fastest
AT_ONCE = 2**24  # bytes of all of them together: more are played no faster, and all wait for the last to stop
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Judged(NamedTuple):
    """What an inference said at every round of an episode; rows after the stop do not count."""

    confidence: Any  # episodes rounds
    correct: Any  # episodes rounds
    log_loss: Any  # episodes rounds


class Episodes(NamedTuple):
    """Played episodes, judged by the team's inference, and the first of them by the exact posterior if there is one."""

    played: Episode
    team: Judged
    exact: Judged | None  # of the first so many episodes
    final: Any  # the team's scores at the stop (episodes, then the shape of the hypothesis space)
    distance: Any = None  # nats from the exact posterior to the team's (as many episodes, rounds)

    @property
    def exists(self) -> np.ndarray:
        """The rounds that took place, the stop included (episodes, rounds)."""
        return np.arange(self.team.correct.shape[1])[None] <= self.played.stop[:, None]

    def at_stop(self, column: np.ndarray) -> np.ndarray:
        """A column's value in the round each episode ended, of as many episodes as the column has."""
        return column[np.arange(len(column)), self.played.stop[: len(column)]]


def play(
    team: Team,
    episodes: int,
    seed: int,
    tick: Callable[[int], None] | None = None,
    exact: int | None = None,
    *,
    certifying: bool = False,
) -> Episodes:
    """Greedy episodes in fresh worlds of the team's problem. `tick` is told how many were played.

    `exact` says how many are judged by the exact posterior too: all, unless it is costly (see `exact_by_default`).
    """
    check_worlds(team.problem)
    if seed >= RESERVED and not certifying:
        check_seed(seed)
    wanted = exact_by_default(team.problem) if exact is None else exact
    judged = episodes if isinstance(team.inference, ExactInference) else min(episodes, wanted)
    size = _batch(team.problem, episodes)

    def one(keys: Key[Array, "worlds"], first: int) -> Episodes:
        judge = first < judged
        part = _play_batch(team.problem, team.behaviour(), team.inference, keys, judge)
        part = jax.tree.map(np.asarray, part)
        if tick:
            tick(len(keys))
        return part

    starts = range(0, episodes, size)
    pool = ThreadPoolExecutor(THREADS if _costly(team.problem) else 1)
    try:
        parts = list(pool.map(one, _batches(episodes, seed, size), starts))
    finally:  # who interrupts it need not wait for batches that were not begun
        pool.shutdown(wait=False, cancel_futures=True)

    def whole(count: int, rows: Iterable[Any]) -> Any:
        return jax.tree.map(lambda *each: np.concatenate(each)[:count], *rows)

    exactly = [(part.exact, part.distance) for part in parts if part.exact is not None]
    played, own, final = whole(episodes, ((part.played, part.team, part.final) for part in parts))
    exact_part, distance = whole(judged, exactly) if exactly else (None, None)
    return Episodes(played, own, exact_part, final, distance)


def check_seed(seed: int) -> None:
    """Refuse seeds that are none, and those whose worlds are kept for certificates."""
    if not 0 <= seed < RESERVED:
        why = " (later ones are reserved for `icmape certify`)" if seed >= RESERVED else ""
        raise UserError(f"seed must lie in 0..{RESERVED - 1}{why}; given {seed}")


def exact_by_default(problem: Problem) -> int:
    """How many episodes are judged by the exact posterior unless told: none, a sample, or all."""
    if problem.posterior == "none":
        return 0
    return SAMPLE if _costly(problem) else 2**31


def _batch(problem: Problem, episodes: int) -> int:
    """Episodes in one compiled call: fewer where each takes long, for the sake of those who watch or interrupt it."""
    return min(BATCH // 10 if _costly(problem) else BATCH, episodes)


def _costly(problem: Problem) -> bool:
    return problem.posterior != "none" and _size(jax.eval_shape(problem.belief)) > COSTLY


def _size(tree: Any) -> int:
    """Bytes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def sample_truths(problem: Problem, worlds: int, seed: int) -> Array:
    """True hypotheses of fresh worlds that no episode is played in."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), STREAM + 1), worlds)
    return _truths(problem, keys)


@jax.jit
def _truths(problem: Problem, keys: Key[Array, "worlds"]) -> Array:
    # not all at once: a world may take much memory while it is made
    return jax.lax.map(lambda key: problem.sample(key=key).hypothesis, keys, batch_size=BATCH)


def _batches(episodes: int, seed: int, size: int) -> Iterator[Key[Array, "worlds"]]:
    """Equal batches (one compiled program), the last one filled up; world i is the same whatever the batch size."""
    for first in range(0, episodes, size):
        yield world_keys(seed, jnp.arange(first, first + size))


def world_keys(seed: int, worlds: Int[Array, "worlds"]) -> Key[Array, "worlds"]:
    """What the episodes in these worlds of an evaluation are played with."""
    root = jax.random.fold_in(jax.random.key(seed), STREAM)
    return jax.vmap(lambda i: jax.random.fold_in(root, i))(worlds)


@eqx.filter_jit
def _play_batch(
    problem: Problem, behaviour: Behaviour, inference: TeamInference, keys: Key[Array, "worlds"], judge: bool
) -> Episodes:
    """Takes a team's parts, not the team: where it comes from would compile it anew."""
    played = _in_parts(lambda some: play_greedy(problem, behaviour, some), keys, _size(jax.eval_shape(behaviour.start)))
    judged = jax.vmap(lambda scores, episode: _judge(problem, scores, episode))
    exactly = _scores(problem, ExactInference(), played) if judge or isinstance(inference, ExactInference) else None
    own = _scores(problem, inference, played) if exactly is None or inference.kind != "exact" else exactly
    final = jax.vmap(lambda scores, stop: scores[stop])(own, played.stop)
    if exactly is None:
        return Episodes(played, judged(own, played), None, final)
    distance = jax.vmap(jax.vmap(problem.hypotheses.divergence))(exactly, own)
    return Episodes(played, judged(own, played), judged(exactly, played), final, distance)


def _scores(problem: Problem, inference: TeamInference, played: Episode) -> Array:
    """What an inference says in every round (episodes, rounds, ...)."""
    size = _size(jax.eval_shape(lambda: inference.start(problem)))
    each = size if inference.kind != "exact" or size <= LARGE else AT_ONCE
    return _in_parts(jax.vmap(lambda episode: inference.unroll(problem, episode)), played, each)


def _in_parts(function: Callable[[Any], Any], rows: Any, each: int) -> Any:
    """A function of many worlds, called with as many at a time as the memory that each of them takes allows."""
    count = jax.tree.leaves(rows)[0].shape[0]
    together = max(1, min(count, AT_ONCE // max(each, 1)))
    if together == count:
        return function(rows)
    while count % together:
        together -= 1
    parts = jax.tree.map(lambda x: x.reshape(count // together, together, *x.shape[1:]), rows)
    return jax.tree.map(lambda x: x.reshape(count, *x.shape[2:]), jax.lax.map(function, parts))


def _judge(problem: Problem, scores: Array, episode: Episode) -> Judged:
    space = problem.hypotheses
    return Judged(
        jax.vmap(space.confidence)(scores),
        jax.vmap(lambda s: space.correct(space.decide(s), episode.hypothesis))(scores),
        jax.vmap(lambda s: -space.log_likelihood(s, episode.hypothesis))(scores),
    )
