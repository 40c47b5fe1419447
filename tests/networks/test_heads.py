"""Actors read their own history only; critics leave out the agent's own action."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.networks import Actors, Critic, Inference
from icmape.problems import Bandit, View
from tests.support import drawn, step, unroll

AGENTS, ARMS, ROUNDS, WIDTH = 3, 2, 5, 6


def normal(seed: int, *shape: int) -> jnp.ndarray:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)


@pytest.fixture(scope="module")
def problem() -> Bandit:
    return Bandit(arms=ARMS, players=AGENTS, horizon=ROUNDS, team_tokens="readings")


@pytest.fixture(scope="module", params=[True, False], ids=["shared", "own"])
def actors(problem, request) -> Actors:
    return drawn(lambda: Actors(problem, WIDTH, "paper+last", -1.0, request.param, key=jax.random.key(0)))


@pytest.fixture(scope="module")
def local() -> View:
    return View(normal(1, AGENTS, ROUNDS, 2 * ARMS))


@pytest.fixture(scope="module")
def team() -> View:
    return View(normal(2, ROUNDS, AGENTS * 2 * ARMS))


def test_another_agents_history_has_no_gradient_on_my_scores(actors, local):
    """The Jacobian of agent i's scores by agent j's tokens is exactly zero off the diagonal."""
    jacobian = jax.jit(jax.jacrev(lambda tokens: actors.unroll(View(tokens))))(local.token)
    strength = np.abs(jacobian).max(axis=(1, 2, 4, 5))  # agents by agents
    assert np.all(strength[~np.eye(AGENTS, dtype=bool)] == 0)
    assert np.all(np.diag(strength) > 0)


def test_another_agents_history_cannot_move_my_scores(actors, local):
    before = unroll(actors, local)
    after = unroll(actors, View(local.token.at[1].add(100.0)))
    np.testing.assert_array_equal(after[np.array([0, 2])], before[np.array([0, 2])])
    assert np.abs(after[1] - before[1]).max() > 1e-2


def test_agents_with_the_same_history_are_told_apart(actors, local):
    """Shared weights read who they are; own weights differ."""
    same = View(jnp.broadcast_to(local.token[:1], local.token.shape))
    scores = unroll(actors, same)
    assert np.abs(scores[0] - scores[1]).max() > 1e-3
    assert np.abs(scores[1] - scores[2]).max() > 1e-3


def test_step_is_unroll(actors, local):
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (AGENTS, *x.shape)), actors.pick(jnp.int32(0)).start())
    found = []
    for t in range(ROUNDS):
        states, scores = step(actors, states, View(local.token[:, t]))
        found.append(scores)
    np.testing.assert_allclose(jnp.stack(found, axis=1), unroll(actors, local), atol=2e-6)


def test_one_actor_picked_out_is_the_one_in_the_team(actors, local):
    together = unroll(actors, local)
    for agent in range(AGENTS):
        alone = unroll(actors.pick(jnp.int32(agent)), View(local.token[agent]), jnp.int32(agent))
        np.testing.assert_allclose(alone, together[agent], atol=2e-6)


def test_stop_starts_at_its_bias(problem):
    def biases() -> jnp.ndarray:
        return Actors(problem, WIDTH, "paper", -4.0, True, key=jax.random.key(0)).actor.head.bias

    found = jax.jit(biases)()
    assert found[-1] == -4.0
    assert np.abs(found[:-1]).max() < 1.0


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
        state, scores = step(inference, state, View(team.token[t]))
        found.append(scores)
    assert found[0].shape == problem.hypotheses.shape
    np.testing.assert_allclose(jnp.stack(found), unroll(inference, team), atol=2e-6)
