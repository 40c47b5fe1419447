"""Seeds do not touch each other, chunks do not matter, and a broken seed stays where it was."""

from functools import partial

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning import train
from icmape.learning.off_policy import Turn
from icmape.learning.train import FAULTS, TrainState
from icmape.settings import override
from tests.support import once
from tests.training import COINS, COINS_CONFIG, COST, advance, start

SEEDS = (215, 219, 321)


@pytest.fixture(scope="module")
def begun() -> TrainState:
    return start(*SEEDS)


@pytest.fixture(scope="module")
def trained(begun) -> TrainState:
    """Six iterations of three seeds in one call."""
    return advance(begun, 0, 6)[0]


def leaves(tree) -> list[np.ndarray]:
    """Everything as plain arrays, random keys included."""
    is_key = lambda x: jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)  # noqa: E731
    return [np.asarray(jax.random.key_data(x) if is_key(x) else x) for x in jax.tree.leaves(tree)]


def assert_same(one, other) -> None:
    for a, b in zip(leaves(one), leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def seed_of(states: TrainState, index: int) -> TrainState:
    return jax.tree.map(lambda x: x[index], states)


def poisoned(tree, index: int):
    """One seed's real numbers made NaN."""
    return jax.tree.map(lambda x: x.at[index].set(jnp.nan) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)


def test_a_run_cut_into_other_chunks_is_the_same_run(begun, trained):
    state = begun
    for first, count in ((0, 1), (1, 3), (4, 2)):
        state, _ = advance(state, first, count)
    assert_same(state, trained)


@pytest.mark.slow  # one more program to compile
def test_a_seed_among_three_is_that_seed_alone(trained):
    """Another program, so equal up to rounding; what was played and counted is equal outright."""
    alone, _ = advance(start(SEEDS[1]), 0, 6)
    one, among = seed_of(alone, 0), seed_of(trained, 1)
    assert_same(one.replay, among.replay)
    assert_same(one.environment_steps, among.environment_steps)
    for a, b in zip(leaves(one.learner), leaves(among.learner), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_a_seed_does_not_depend_on_its_company_or_place(trained):
    again, _ = advance(start(321, 7, 215), 0, 6)
    assert_same(seed_of(again, 0), seed_of(trained, 2))
    assert_same(seed_of(again, 2), seed_of(trained, 0))


def test_seeds_differ(trained):
    for part in (trained.learner.actors, trained.learner.inference, trained.replay.episodes.observations):
        one, other = leaves(jax.tree.map(lambda x: x[0], part)), leaves(jax.tree.map(lambda x: x[1], part))
        assert any(np.any(a != b) for a, b in zip(one, other, strict=True))


def test_training_moves_every_network(begun, trained):
    for name in ("actors", "critics", "inference", "target_actors", "target_critics", "slow_inference"):
        before, after = leaves(getattr(begun.learner, name)), leaves(getattr(trained.learner, name))
        assert any(np.any(a != b) for a, b in zip(before, after, strict=True)), name


def test_a_price_without_a_rate_stays(trained):
    np.testing.assert_allclose(trained.price.step_cost, COST)


def test_rounds_are_counted_as_they_are_played(begun, trained):
    """128 warm-up episodes, then six iterations of 32: an episode has as many rounds of data as its stop says."""
    np.testing.assert_array_equal(begun.environment_steps, np.sum(begun.replay.episodes.stop, axis=1))
    np.testing.assert_array_equal(trained.environment_steps, np.sum(trained.replay.episodes.stop, axis=1))
    np.testing.assert_array_equal(trained.replay.size, 128 + 6 * 32)


def test_half_of_each_iteration_is_greedy_and_unexplored(trained):
    greedy = np.asarray(trained.replay.episodes.greedy)[:, 128 : 128 + 6 * 32].reshape(3, 6, 32)
    np.testing.assert_array_equal(greedy, np.broadcast_to(np.arange(32) < 16, greedy.shape))
    explored = np.asarray(trained.replay.episodes.explored)[:, 128 : 128 + 6 * 32].reshape(3, 6, 32, -1)
    assert not np.any(explored[:, :, :16])
    assert np.any(explored[:, :, 16:])


@pytest.mark.parametrize("part", ["critics", "actor_moments"])
def test_a_seed_that_breaks_stays_as_it_was_and_the_others_go_on(begun, trained, part):
    """NaN in the middle seed's critics, or in its actors' optimizer, which would hand it on to the actors and, as
    targets average over what these would do, to the critics."""
    middle, _ = advance(begun, 0, 3)
    sick = middle._replace(learner=middle.learner._replace(**{part: poisoned(getattr(middle.learner, part), 1)}))
    after, metrics = advance(sick, 3, 3)
    assert [FAULTS[code] for code in np.asarray(after.fault)][::2] == ["", ""]
    assert FAULTS[int(after.fault[1])] == "critic_loss"
    for well in (0, 2):
        assert_same(seed_of(after, well), seed_of(trained, well))
        assert np.isfinite(metrics["critic_loss"][well])
    assert_same(seed_of(after, 1).learner, seed_of(sick, 1).learner)
    if part == "actor_moments":  # it never reached what acts
        assert all(np.all(np.isfinite(x)) for x in leaves(seed_of(after, 1).learner.actors))
    later, metrics = advance(after, 6, 1)
    assert_same(seed_of(later, 1), seed_of(after, 1))
    assert np.isnan(metrics["tau"][1])


def conditions(jaxpr: jax.extend.core.Jaxpr) -> int:
    """How often a program takes one branch or the other, in all of its parts."""
    inner = [
        part for eqn in jaxpr.eqns for value in eqn.params.values() for part in jax.tree.leaves(value, is_leaf=_is_part)
    ]
    own = sum(eqn.primitive.name == "cond" for eqn in jaxpr.eqns)
    return own + sum(conditions(getattr(part, "jaxpr", part)) for part in inner if _is_part(part))


def _is_part(value: object) -> bool:
    return isinstance(value, jax.extend.core.Jaxpr | jax.extend.core.ClosedJaxpr)


@pytest.fixture
def side_by_side(monkeypatch):
    """Seeds as an accelerator runs them."""
    monkeypatch.setattr(train, "_beside_others", lambda states: jax.tree.leaves(states)[0].shape[0] > 1)
    return partial(train.advance.__wrapped__, COINS, COINS_CONFIG)


def test_seeds_side_by_side_take_one_branch_of_every_condition(begun, side_by_side):
    """One seed has one condition more: whether it has failed. Taking both branches, all would validate every time."""
    numbers = jnp.int32(0), jnp.int32(1)
    one = conditions(jax.make_jaxpr(side_by_side)(jax.tree.map(lambda x: x[:1], begun), *numbers).jaxpr)
    three = conditions(jax.make_jaxpr(side_by_side)(begun, *numbers).jaxpr)
    assert three == one - 1 > 0


def test_seeds_side_by_side_learn_what_they_learn_alone(begun, trained, side_by_side):
    """Also where one of them has failed: it stays as it was, and has no metrics."""
    failed = begun._replace(fault=jnp.array([0, 1, 0]))
    after, metrics = jax.jit(side_by_side)(failed, jnp.int32(0), jnp.int32(6))
    assert_same(seed_of(after, 1), seed_of(failed, 1))
    assert np.isnan(metrics["tau"][1])
    for well in (0, 2):
        one, other = seed_of(after, well), seed_of(trained, well)
        np.testing.assert_array_equal(one.best.iteration, other.best.iteration)
        np.testing.assert_array_equal(one.environment_steps, other.environment_steps)
        for a, b in zip(leaves(one.learner), leaves(other.learner), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", FAULTS[1:4])
def test_a_loss_that_is_not_finite_is_named(begun, name):
    losses = {key: jnp.float32(jnp.inf if key == name else 1.0) for key in FAULTS[1:4]}
    assert FAULTS[int(train.find_fault(losses, seed_of(begun, 0).learner))] == name


def test_validation_runs_on_its_own_schedule(trained):
    """Every five iterations here: by the sixth there was one, and its team is kept."""
    np.testing.assert_array_equal(trained.best.iteration, 5)
    np.testing.assert_array_equal(trained.best.accuracy, trained.validation["accuracy"])
    assert COINS_CONFIG.validation_interval == 5


def test_without_a_validated_team_there_is_none_to_polish(begun):
    """From its second iteration on this training would be polishing, but its first validation comes after the fifth:
    until then the actors learn. What is not learned after it has no loss, which is no fault.
    """
    config = override(COINS_CONFIG, {"finetune_fraction": 0.9, "iterations": 10, "validation_interval": 5})

    def play(state: TrainState) -> tuple:
        once_more = lambda first: train.run_chunk(COINS, config, state, first, jnp.int32(1))  # noqa: E731
        return jax.lax.map(once_more, jnp.array([3, 8]))

    before = seed_of(begun, 0)
    after, metrics = once(play, before)
    learned, polished = (seed_of(after.learner.critics, index) for index in (0, 1))
    assert any(np.any(a != b) for a, b in zip(leaves(learned), leaves(before.learner.critics), strict=True))
    assert_same(polished, before.learner.critics)
    np.testing.assert_array_equal(np.isfinite(metrics["critic_loss"]), [True, False])
    np.testing.assert_array_equal(after.fault, 0)
    assert np.all(np.isfinite(metrics["accuracy"]))


def test_while_polishing_only_the_inference_learns(begun):
    """On the same episodes, with and without; the losses of the rest are 0."""
    config = override(COINS_CONFIG, {"finetune_fraction": 0.5})

    def learn(state: TrainState) -> tuple:
        episodes = jax.tree.map(lambda x: x[: config.num_envs], state.replay.episodes)
        turn = Turn(episodes, state.replay, state.price.step_cost, jnp.int32(200), state.length)
        everyone = jnp.ones(config.num_envs, bool)
        learned = partial(train.learn, COINS, config, state.learner, turn)
        return jax.lax.map(
            lambda polishing: learned(polishing, everyone, key=jax.random.key(0)), jnp.array([True, False])
        )

    before = seed_of(begun, 0)
    learners, losses = once(learn, before)
    polished, trained = (seed_of(learners, index) for index in (0, 1))
    old = before.learner
    assert_same((polished.actors, polished.critics), (old.actors, old.critics))
    assert float(losses["critic_loss"][0]) == 0
    assert any(np.any(a != b) for a, b in zip(leaves(polished.inference), leaves(old.inference), strict=True))
    assert any(np.any(a != b) for a, b in zip(leaves(trained.critics), leaves(old.critics), strict=True))
