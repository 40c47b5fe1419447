"""Actors read their own history only; critics leave out the agent's own action."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.networks import Actors, Critic, Inference
from icmape.problem import Features
from icmape.zoo.bandit.bandit import Bandit
from tests.support import drawn, step, unroll

AGENTS, ARMS, ROUNDS, WIDTH = 3, 2, 5, 6


def normal(seed: int, *shape: int) -> jnp.ndarray:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)


@pytest.fixture(scope="module")
def problem() -> Bandit:
    return Bandit(arms=ARMS, players=AGENTS, horizon=ROUNDS, team_tokens="readings")


KINDS = [(True, "learned", 0), (False, "apart", ROUNDS)]


@pytest.fixture(scope="module", params=KINDS, ids=["shared", "own, with a clock"])
def actors(problem, request) -> Actors:
    shared, stop, rounds = request.param
    return drawn(lambda: Actors(problem, WIDTH, "paper+last", -1.0, shared, stop, rounds, key=jax.random.key(0)))


@pytest.fixture(scope="module")
def local() -> Features:
    return Features(normal(1, AGENTS, ROUNDS, 2 * ARMS))


@pytest.fixture(scope="module")
def team() -> Features:
    return Features(normal(2, ROUNDS, AGENTS * 2 * ARMS))


def test_another_agents_history_has_no_gradient_on_my_scores(actors, local):
    """The Jacobian of agent i's scores by agent j's tokens is exactly zero off the diagonal."""
    jacobian = jax.jit(jax.jacrev(lambda tokens: actors.unroll(Features(tokens))))(local.token)
    strength = np.abs(jacobian).max(axis=(1, 2, 4, 5))  # agents by agents
    assert np.all(strength[~np.eye(AGENTS, dtype=bool)] == 0)
    assert np.all(np.diag(strength) > 0)


def test_another_agents_history_cannot_move_my_scores(actors, local):
    before = unroll(actors, local)
    after = unroll(actors, Features(local.token.at[1].add(100.0)))
    np.testing.assert_array_equal(after[np.array([0, 2])], before[np.array([0, 2])])
    assert np.abs(after[1] - before[1]).max() > 1e-2


def test_agents_with_the_same_history_are_told_apart(actors, local):
    """Shared weights read who they are; own weights differ."""
    same = Features(jnp.broadcast_to(local.token[:1], local.token.shape))
    scores = unroll(actors, same)
    assert np.abs(scores[0] - scores[1]).max() > 1e-3
    assert np.abs(scores[1] - scores[2]).max() > 1e-3


def test_step_is_unroll(actors, local):
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (AGENTS, *x.shape)), actors.pick(jnp.int32(0)).start())
    found = []
    for t in range(ROUNDS):
        states, scores = step(actors, states, Features(local.token[:, t]), jnp.int32(t))
        found.append(scores)
    np.testing.assert_allclose(jnp.stack(found, axis=1), unroll(actors, local), atol=2e-6)


def test_one_actor_picked_out_is_the_one_in_the_team(actors, local):
    together = unroll(actors, local)
    for agent in range(AGENTS):
        alone = unroll(actors.pick(jnp.int32(agent)), Features(local.token[agent]), jnp.int32(agent))
        np.testing.assert_allclose(alone, together[agent], atol=2e-6)


def test_stop_starts_at_its_bias(problem):
    def biases() -> jnp.ndarray:
        return Actors(problem, WIDTH, "paper", -4.0, True, key=jax.random.key(0)).actor.head.bias

    found = jax.jit(biases)()
    assert found[-1] == -4.0
    assert np.abs(found[:-1]).max() < 1.0


# -- actors that know how many rounds there are


def with_clock(problem: Bandit, stop: str, shared: bool = True, rounds: int = ROUNDS) -> Actors:
    return drawn(lambda: Actors(problem, WIDTH, "paper+last", 0.0, shared, stop, rounds, key=jax.random.key(0)))


STOPS = ["learned", "zero", "apart"]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("rounds", [3, ROUNDS])
def test_in_the_last_round_everyone_stops(problem, local, stop, rounds):
    """Not before, unless it is their own wish; and ever after."""
    scores = np.asarray(unroll(with_clock(problem, stop, rounds=rounds), local))
    lead = scores[..., -1] - scores[..., :-1].max(axis=-1)
    assert np.all(lead[:, rounds - 1 :] > 1e6)
    assert np.all(np.abs(lead[:, : rounds - 1]) < 100)


def test_without_a_number_of_rounds_nobody_must_stop(problem, local):
    actors = with_clock(problem, "learned", rounds=0)
    assert actors.actor.schedule.size == 0
    assert np.abs(unroll(actors, local)).max() < 100


def test_a_stop_that_is_apart_is_compared_with_the_best_action(problem, local):
    """So the best action scores 0, and whether an agent stops is the sign of one output."""
    scores = np.asarray(unroll(with_clock(problem, "apart"), local))
    np.testing.assert_allclose(scores[..., :-1].max(axis=-1), 0.0, atol=1e-6)
    assert np.ptp(scores[:, :-1, -1]) > 0.5  # which is read from histories


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("stop", STOPS)
def test_stopping_at_a_margin(problem, local, stop, shared):
    """STOP's lead over the best action is smaller by the margin; the order of the actions stays as it was."""
    actors = with_clock(problem, stop, shared)
    before, after = (np.asarray(unroll(it, local))[:, :-1] for it in (actors, actors.stopping_at(jnp.float32(0.3))))
    lead, moved = (x[..., -1] - x[..., :-1].max(axis=-1) for x in (before, after))
    np.testing.assert_allclose(moved, lead - 0.3, atol=1e-5)
    np.testing.assert_allclose(np.diff(after[..., :-1]), np.diff(before[..., :-1]), atol=1e-5)
    if stop == "zero":
        np.testing.assert_array_equal(after[..., -1], 0.0)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("length", [2, ROUNDS, ROUNDS + 3])
def test_following_a_schedule(problem, local, shared, length):
    """Its scores are added to those of the actions, round by round and agent by agent; where it is too short, 0."""
    bare = eqx.tree_at(lambda a: a.actor.schedule, with_clock(problem, "learned", shared), replace_fn=jnp.zeros_like)
    schedule = normal(7, length, AGENTS, ARMS)
    before, after = (np.asarray(unroll(it, local)) for it in (bare, bare.following(schedule)))
    wanted = np.zeros((ROUNDS, AGENTS, ARMS), np.float32)
    wanted[:length] = schedule[:ROUNDS]
    np.testing.assert_allclose((after - before)[..., :-1], np.swapaxes(wanted, 0, 1), atol=1e-5)
    np.testing.assert_array_equal(after[..., -1], before[..., -1])


def test_scaled_actors_find_actions_more_alike(problem, local):
    """What they make of their histories is a tenth; biases stay."""
    actors = eqx.tree_at(lambda a: a.actor.schedule, with_clock(problem, "learned"), replace_fn=jnp.zeros_like)
    bias = np.asarray(actors.actor.head.bias)
    before, after = (np.asarray(unroll(it, local))[:, :-1] - bias for it in (actors, actors.scaled(0.1)))
    np.testing.assert_allclose(after, 0.1 * before, atol=1e-6)


@pytest.fixture(scope="module")
def critic(problem) -> Critic:
    return drawn(lambda: Critic(problem, WIDTH, "paper+last", ARMS, key=jax.random.key(3)))


def test_a_value_ignores_the_agents_own_action_and_reads_the_others(critic):
    summary, joint = normal(3, critic.encoder.size), normal(4, AGENTS, ARMS)
    jacobian = np.abs(jax.jit(jax.jacrev(partial(critic.values, summary)))(joint)).max(axis=(1, 3))  # of i by j
    assert np.all(np.diag(jacobian) == 0)
    assert np.all(jacobian[~np.eye(AGENTS, dtype=bool)] > 1e-4)
    values = jax.jit(partial(critic.values, summary))
    before = values(joint)
    for agent in range(AGENTS):
        moved = values(joint.at[agent].set(jnp.array([9.0, -9.0])))
        np.testing.assert_array_equal(moved[agent], before[agent])
        assert np.abs(np.delete(moved - before, agent, axis=0)).max() > 1e-3


def test_values_are_one_network_over_summary_others_and_identity(critic):
    """The shortcut that shares the summary's product equals the plain two layers on the concatenated input."""
    summary = normal(3, critic.encoder.size)
    joint = jax.nn.one_hot(jnp.array([1, 0, 1]), ARMS)

    @jax.jit
    def plain(agent):
        inputs = jnp.concatenate([summary, joint.at[agent].set(0.0).reshape(-1), jax.nn.one_hot(agent, AGENTS)])
        return critic.output(jax.nn.gelu(critic.hidden(inputs)))

    values = jax.jit(partial(critic.values, summary))(joint)
    for agent in range(AGENTS):
        np.testing.assert_allclose(values[agent], plain(jnp.int32(agent)), atol=2e-6)


def test_inference_step_is_unroll(problem, team):
    inference = drawn(lambda: Inference(problem, WIDTH, "paper+last", key=jax.random.key(5)))
    state, found = inference.start(), []
    for t in range(ROUNDS):
        state, scores = step(inference, state, Features(team.token[t]))
        found.append(scores)
    assert found[0].shape == problem.hypotheses.shape
    np.testing.assert_allclose(jnp.stack(found), unroll(inference, team), atol=2e-6)
