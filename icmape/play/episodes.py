"""Episodes of a team in fresh worlds, with the posterior at every round."""

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, Key

from icmape.errors import UserError
from icmape.memory import check_fits
from icmape.play.devices import all_devices, over_devices
from icmape.play.inference import ExactInference, TeamInference
from icmape.play.policy import LearnedPolicy
from icmape.play.rollout import Episode, play_greedy, play_past_stops
from icmape.play.stop import Behaviour, LearnedStop
from icmape.play.team import Team
from icmape.problem import Problem, check_worlds
from icmape.problem.check import tree_bytes
from icmape.problem.sizes import sizes_of

RESERVED = 2**30  # larger seeds are reserved for certificates
STREAM = 0x0E7A1  # separates the worlds of evaluation from those of training with the same seed
MOST_EPISODES = 2**31
BATCH = 1000
SAMPLE = 1000  # episodes judged by a costly exact posterior
COSTLY = 2**20  # bytes of a belief, above which batches are smaller
LARGE = 2**22  # bytes of a belief, above which one world at a time is fastest
AT_ONCE = 2**24  # bytes of all states of a batch; larger batches are not faster and wait for the longest episode
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

Part = TypeVar("Part")


class Judged(NamedTuple):
    """Posterior of an inference at every round of the episodes; rows after the stop are not defined."""

    confidence: Any  # episodes rounds
    correct: Any  # episodes rounds
    log_loss: Any  # episodes rounds


class Episodes(NamedTuple):
    """Episodes judged by the inference of the team, and the first of them by the exact posterior if there is one."""

    played: Episode
    team: Judged
    exact: Judged | None  # of the first episodes
    final: Any  # the team's scores at the stop (episodes, then the shape of the hypothesis space)
    distance: Any = None  # divergence of the team's posterior from the exact one, in nats (as many episodes, rounds)

    @property
    def exists(self) -> np.ndarray:
        """The rounds that were played, including the stop (episodes, rounds)."""
        return np.arange(self.team.correct.shape[1])[None] <= self.played.stop[:, None]

    def at_stop(self, column: np.ndarray) -> np.ndarray:
        """The values of `column` (episodes, rounds) at the stops of its episodes."""
        return column[np.arange(len(column)), self.played.stop[: len(column)]]


class PastStops(NamedTuple):
    """Episodes in which every STOP was overruled: they show where each stopping threshold would have ended them."""

    margin: Any  # episodes rounds: of STOP over the best action, the largest of all agents
    confidence: Any  # episodes rounds: of the inference of the team
    correct: Any  # episodes rounds


def play(
    team: Team,
    episodes: int,
    seed: int,
    tick: Callable[[int], None] | None = None,
    exact: int | None = None,
    *,
    certifying: bool = False,
) -> Episodes:
    """Greedy episodes in fresh worlds of the team's problem. `tick` is called with the number of episodes per batch.

    `exact` is the number of episodes that the exact posterior judges (default: `exact_by_default`).
    """
    check_worlds(team.problem)
    check_episodes(team.problem, episodes)
    parts = list(play_parts(team, episodes, seed, tick, exact, certifying=certifying))
    exactly = [(part.exact, part.distance) for part in parts if part.exact is not None]
    played, team_part, final = _joined((part.played, part.team, part.final) for part in parts)
    exact_part, distance = _joined(exactly) if exactly else (None, None)
    return Episodes(played, team_part, exact_part, final, distance)


def play_parts(
    team: Team,
    episodes: int,
    seed: int,
    tick: Callable[[int], None] | None = None,
    exact: int | None = None,
    *,
    certifying: bool = False,
) -> Iterator[Episodes]:
    """The episodes of `play` in their order, batch by batch: any number of them takes the memory of a few batches."""
    check_worlds(team.problem)
    if seed >= RESERVED and not certifying:  # negative ones tune baselines
        check_seed(seed)
    _check_numbered(episodes)
    wanted = exact_by_default(team.problem) if exact is None else exact
    judged = episodes if isinstance(team.inference, ExactInference) else min(episodes, wanted)

    def play_part(keys: Key[Array, "worlds"], worlds: range, mesh: Mesh) -> Episodes:
        judge = worlds.start < judged
        part = _play_batch(team.problem, team.behaviour(), team.inference, keys, judge, mesh)
        played, team_part, final = _first((part.played, part.team, part.final), len(worlds))
        exact_part, distance = _first((part.exact, part.distance), min(len(worlds), judged - worlds.start))
        if tick:
            tick(len(worlds))
        return Episodes(played, team_part, exact_part, final, distance)

    return _parts(play_part, team.problem, episodes, seed)


def watch_past_stops(team: Team, episodes: int, seed: int, tick: Callable[[int], None] | None = None) -> PastStops:
    """The worlds of `play`, each played once past every stop. Observations are dropped batch by batch.

    Actors that stop by their plan in a certain round are played up to that round, if it is they who stop.
    """
    check_worlds(team.problem)
    check_past_stops(team.problem, episodes)
    stopping = isinstance(team.policy, LearnedPolicy) and isinstance(team.stop, LearnedStop)
    rounds = (team.policy.actors.actor.rounds or None) if stopping else None
    behaviour = Behaviour(team.problem, team.policy, LearnedStop(), team.inference)

    def watch_part(keys: Key[Array, "worlds"], worlds: range, mesh: Mesh) -> PastStops:
        part: PastStops = _first(_watch_batch(team.problem, behaviour, team.inference, keys, rounds, mesh), len(worlds))
        if tick:
            tick(len(worlds))
        return part

    whole: PastStops = _joined(_parts(watch_part, team.problem, episodes, seed))
    return whole


def _parts(
    play_part: Callable[[Key[Array, "worlds"], range, Mesh], Part], problem: Problem, episodes: int, seed: int
) -> Iterator[Part]:
    """Results of all batches in their order, with few of them under way. Batches have one size, so one program.

    `play_part` is called with keys, the numbers of their worlds, and the devices. The last batch has fewer worlds than
    keys. World i does not depend on the size of batches.
    """
    mesh = all_devices()
    size = _batch(problem, episodes) * mesh.size
    threads = THREADS if _costly(problem) else 1
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Part]] = deque()
    try:
        for first in range(0, episodes, size):
            keys = world_keys(seed, jnp.arange(first, first + size))
            waiting.append(pool.submit(play_part, keys, range(first, min(first + size, episodes)), mesh))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # an interrupt does not wait for batches that have not begun
        pool.shutdown(wait=False, cancel_futures=True)


def _first(rows: Any, count: int) -> Any:
    """The first rows of every array, in the memory of the host."""
    return jax.tree.map(lambda x: np.asarray(x)[:count], rows)


def _joined(parts: Iterable[Any]) -> Any:
    return jax.tree.map(lambda *each: np.concatenate(each), *parts)


def check_episodes(problem: Problem, episodes: int) -> None:
    """Refuse more episodes than fit in memory: their data and posteriors are kept, twice while they are joined."""
    sizes = sizes_of(problem)
    scores = 4 * math.prod(problem.hypotheses.shape)
    kept = 2.0 * episodes * (sizes.stored + scores + 22 * problem.horizon)
    batch = _batch(problem, episodes) * (sizes.stored + sizes.played)
    check_fits(f"{episodes:,} episodes", kept + batch, "play fewer of them")


def check_past_stops(problem: Problem, episodes: int) -> None:
    """Refuse more episodes past their stops than fit in memory: three columns are kept, twice while they are joined."""
    _check_numbered(episodes)
    sizes = sizes_of(problem)
    kept = 2.0 * episodes * 9 * problem.horizon
    batch = _batch(problem, episodes) * (sizes.stored + sizes.played)
    check_fits(f"{episodes:,} episodes past their stops", kept + batch, "play fewer of them")


def _check_numbered(episodes: int) -> None:
    if episodes > MOST_EPISODES:
        raise UserError(f"worlds are numbered in 32 bits, so there are {MOST_EPISODES:,}; given {episodes:,}")


def check_seed(seed: int) -> None:
    """Raise `UserError` for seeds out of range or reserved for certificates."""
    if not 0 <= seed < RESERVED:
        why = " (later ones are reserved for `icmape certify`)" if seed >= RESERVED else ""
        raise UserError(f"seed must lie in 0..{RESERVED - 1}{why}; given {seed}")


def exact_by_default(problem: Problem) -> int:
    """The default number of episodes that the exact posterior judges: none, a sample, or all."""
    if problem.posterior == "none":
        return 0
    return SAMPLE if _costly(problem) else 2**31


def _batch(problem: Problem, episodes: int) -> int:
    """Episodes per compiled call: fewer if they are slow, so that progress is shown and interrupts are handled."""
    return min(BATCH // 10 if _costly(problem) else BATCH, episodes)


def _costly(problem: Problem) -> bool:
    return problem.posterior != "none" and tree_bytes(jax.eval_shape(problem.belief)) > COSTLY


def sample_truths(problem: Problem, worlds: int, seed: int) -> Array:
    """True hypotheses of fresh worlds in which no episodes are played."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), STREAM + 1), worlds)
    return _truths(problem, keys)


@jax.jit
def _truths(problem: Problem, keys: Key[Array, "worlds"]) -> Array:
    # in batches: sampling a world may take much memory
    return jax.lax.map(lambda key: problem.sample(key=key).hypothesis, keys, batch_size=BATCH)


def world_keys(seed: int, worlds: Int[Array, "worlds"]) -> Key[Array, "worlds"]:
    """The keys of the episodes in these worlds of an evaluation."""
    return _folded(jax.random.fold_in(jax.random.key(seed), STREAM), worlds)


@jax.jit
def _folded(root: Key[Array, ""], numbers: Int[Array, "worlds"]) -> Key[Array, "worlds"]:
    return jax.vmap(lambda number: jax.random.fold_in(root, number))(numbers)


@eqx.filter_jit
def _play_batch(
    problem: Problem,
    behaviour: Behaviour,
    inference: TeamInference,
    keys: Key[Array, "worlds"],
    judge: bool,
    mesh: Mesh,
) -> Episodes:
    """Takes the parts of a team, because another card of the team would compile the program again."""
    return over_devices(mesh, lambda mine: _play_here(problem, behaviour, inference, mine, judge), keys)


def _play_here(
    problem: Problem, behaviour: Behaviour, inference: TeamInference, keys: Key[Array, "worlds"], judge: bool
) -> Episodes:
    each = tree_bytes(jax.eval_shape(behaviour.start))
    played = _in_parts(lambda part: play_greedy(problem, behaviour, part), keys, each)
    judged = jax.vmap(lambda rows, episode: _judge(problem, rows, episode))
    exactly = _scores(problem, ExactInference(), played) if judge or isinstance(inference, ExactInference) else None
    scores = _scores(problem, inference, played) if exactly is None or inference.kind != "exact" else exactly
    final = jax.vmap(lambda rows, stop: rows[stop])(scores, played.stop)
    if exactly is None:
        return Episodes(played, judged(scores, played), None, final)
    distance = jax.vmap(jax.vmap(problem.hypotheses.divergence))(exactly, scores)
    return Episodes(played, judged(scores, played), judged(exactly, played), final, distance)


@eqx.filter_jit
def _watch_batch(
    problem: Problem,
    behaviour: Behaviour,
    inference: TeamInference,
    keys: Key[Array, "worlds"],
    rounds: int | None,
    mesh: Mesh,
) -> PastStops:
    def watch(mine: Key[Array, "worlds"]) -> PastStops:
        each = tree_bytes(jax.eval_shape(behaviour.start))
        played = _in_parts(lambda part: play_past_stops(problem, behaviour, part, rounds), mine, each)
        judge = jax.vmap(lambda rows, episode: _judge(problem, rows, episode))
        judged = judge(_scores(problem, inference, played), played)
        return PastStops(played.margin, judged.confidence, judged.correct)

    return over_devices(mesh, watch, keys)


@eqx.filter_jit
def confidence_at_stop(problem: Problem, inference: TeamInference, played: Episode) -> Float[Array, "episodes"]:
    """The confidence of an inference at the stops of episodes."""
    scores = jax.vmap(lambda rows, stop: rows[stop])(_scores(problem, inference, played), played.stop)
    return jax.vmap(problem.hypotheses.confidence)(scores)


def _scores(problem: Problem, inference: TeamInference, played: Episode) -> Array:
    """Scores of an inference in every round (episodes, rounds, ...)."""
    size = tree_bytes(jax.eval_shape(lambda: inference.start(problem)))
    each = size if inference.kind != "exact" or size <= LARGE else AT_ONCE
    return _in_parts(jax.vmap(lambda episode: inference.unroll(problem, episode)), played, each)


def _in_parts(function: Callable[[Any], Any], rows: Any, each: int) -> Any:
    """Apply a function of many worlds in batches, by the memory (`each`, in bytes) that one world takes."""
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
