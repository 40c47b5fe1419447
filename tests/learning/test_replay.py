"""The replay is a ring of whole episodes, and a small one."""

import jax
import jax.numpy as jnp
import numpy as np

from icmape.learning import replay
from icmape.networks import Actors
from icmape.play.policy import LearnedPolicy
from icmape.play.rollout import Episode, play_greedy
from icmape.zoo.bandit.bandit import Bandit
from tests.coins import Coins

PROBLEM = Coins(horizon=3)
push = jax.jit(replay.push)
draw = jax.jit(replay.draw, static_argnames="count")


def episodes(*marks: int) -> Episode:
    """Episodes that can be told apart: every leaf carries the mark."""
    column = jnp.asarray(marks)
    rows = jnp.broadcast_to(column[:, None, None], (len(marks), 3, 1)).astype(jnp.int8)
    return Episode(rows, rows, rows[..., 0] > 0, column, column.astype(jnp.int8), column > 0)


def filled(*groups: tuple[int, ...], capacity: int = 5) -> replay.Replay:
    memory = replay.empty(episodes(0), capacity)
    for group in groups:
        memory = push(memory, episodes(*group))
    return memory


def test_new_episodes_replace_the_oldest():
    memory = filled((1, 2), (3, 4), (5, 6), (7,))
    assert int(memory.size) == 5
    assert sorted(np.asarray(memory.episodes.stop).tolist()) == [3, 4, 5, 6, 7]


def test_an_episode_is_kept_whole():
    memory = filled((1, 2), (3, 4), (5, 6), (7,))
    marks = np.asarray(memory.episodes.stop)
    for leaf in (memory.episodes.actions, memory.episodes.observations):
        np.testing.assert_array_equal(leaf, np.broadcast_to(marks[:, None, None], leaf.shape))
    np.testing.assert_array_equal(memory.episodes.hypothesis, marks)


def test_only_filled_rows_are_drawn():
    """100 draws of 3 filled rows out of 5: all three are seen (missing one has chance 3·(2/3)^100), no empty one is."""
    batch = draw(filled((1, 2, 3)), count=100, key=jax.random.key(0))
    assert set(np.asarray(batch.stop).tolist()) == {1, 2, 3}
    np.testing.assert_array_equal(batch.actions[:, 0, 0], batch.stop)


def test_a_full_replay_draws_from_all_rows():
    """200 draws of 5 rows miss one with chance 5·(4/5)^200 < 1e-18."""
    batch = draw(filled((1, 2), (3, 4), (5, 6)), count=200, key=jax.random.key(0))
    assert set(np.asarray(batch.stop).tolist()) == {2, 3, 4, 5, 6}


def test_fifty_thousand_episodes_of_the_papers_bandit_fit_in_100_mb():
    problem = Bandit(arms=3, players=5, horizon=50)

    def full() -> replay.Replay:
        actors = Actors(problem, 4, "paper", 0.0, True, key=jax.random.key(0))
        some = play_greedy(problem, LearnedPolicy(actors), jax.random.split(jax.random.key(0), 2))
        return replay.empty(some, 50_000)

    sizes = [leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(jax.eval_shape(full))]
    assert sum(sizes) < 100e6
    assert sum(sizes) > 50_000 * 49 * 5 * 2  # an action and a reading of every agent and round is a byte each
