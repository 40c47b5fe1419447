"""A problem as a game with a shared reward: what it pays, when it ends, and who sees what."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.random_inference import random_episode
from icmape.ecosystem.game import Game
from icmape.networks import make_inference
from icmape.play.inference import ExactInference, NetworkInference
from icmape.problem import Unreliable
from icmape.zoo.bandit.bandit import Bandit, BanditBelief, BanditWorld

PRICE = 0.06
BANDIT = Bandit(arms=2, players=3, horizon=6)
STOP = BANDIT.actions


@pytest.fixture(scope="module", params=["exact", "learned"])
def game(request):
    if request.param == "exact":
        return Game(BANDIT, ExactInference(), PRICE)
    network = make_inference(BANDIT, 8, "paper+last", "default", key=jax.random.key(4))
    return Game(BANDIT, NetworkInference(network), PRICE)


@pytest.fixture(scope="module")
def exact():
    return Game(BANDIT, ExactInference(), PRICE)


@eqx.filter_jit
def step(game, key, state, actions):
    return game.step(key, state, actions)


def play(game, rows, seed=0):
    """The states before and after every joint action, the rewards, and how each turn ended the episode, if it did."""
    state = game.reset(jax.random.key(seed))
    states, rewards, ends = [state], [], []
    for number, actions in enumerate(rows):
        turn = step(game, jax.random.key(100 * seed + number + 1), state, jnp.array(actions))
        state = turn.state
        states.append(state)
        rewards.append(float(turn.reward))
        ends.append("stopped" if turn.stopped else "truncated" if turn.truncated else None)
    return states, rewards, ends


def test_an_episode_pays_its_last_potential_minus_its_first_minus_the_price_of_its_rounds(game):
    states, rewards, ends = play(game, [(0, 0, 1), (1, 1, 1), (0, 0, 0), (STOP, 0, 0)])
    assert ends == [None, None, None, "stopped"]
    gained = float(game.potential(states[-1]) - game.potential(states[0]))
    np.testing.assert_allclose(sum(rewards), gained - 3 * PRICE, atol=1e-6)


def test_the_potential_is_the_posterior_probability_of_the_truth(exact):
    # one player on arm 0 is paid or not; the posterior of these counts is the problem's own
    states, _, _ = play(exact, [(0, 1, 1)], seed=3)
    memories, truth = states[1].memories, states[1].world.hypothesis
    belief = BANDIT.update_belief(BANDIT.belief(), memories.arm, memories.paid.astype(jnp.int8))
    assert isinstance(belief, BanditBelief)
    chances = np.exp(np.asarray(BANDIT.log_posterior(belief)))
    expected = np.prod([chances[arm, capacity] for arm, capacity in enumerate(np.asarray(truth))])
    np.testing.assert_allclose(exact.potential(states[1]), expected, rtol=1e-5)
    np.testing.assert_allclose(exact.potential(states[0]), 1 / 9, rtol=1e-5)  # 3 × 3 capacities, all alike at first


@pytest.mark.parametrize("who", range(3))
def test_anybody_s_stop_ends_the_episode_for_all_without_a_sample_or_a_reward(exact, who):
    actions = np.zeros(3, int)
    actions[who] = STOP
    states, rewards, ends = play(exact, [(0, 1, 0), tuple(actions)])
    assert ends == [None, "stopped"]
    assert rewards[1] == 0.0
    jax.tree.map(np.testing.assert_array_equal, states[1], states[2])


def test_the_horizon_truncates_before_the_round_in_which_stop_is_forced(exact):
    states, rewards, ends = play(exact, [(0, 1, 0)] * (BANDIT.horizon - 1))
    assert ends == [None] * (BANDIT.horizon - 2) + ["truncated"]
    assert int(states[-1].number) == BANDIT.horizon - 1
    gained = float(exact.potential(states[-1]) - exact.potential(states[-2]))
    np.testing.assert_allclose(rewards[-1], gained - PRICE, atol=1e-6)  # that round was played and is paid


def test_a_silent_agent_s_stop_is_not_offered_and_not_heard():
    """All agents fall silent before the first round: their STOP is executed as their first action."""
    silent = Game(Unreliable(BANDIT, silent=1.0), ExactInference(), PRICE)
    state = silent.reset(jax.random.key(0))
    np.testing.assert_array_equal(silent.mask(state), [[True, True, False]] * 3)
    assert not silent.step(jax.random.key(1), state, jnp.array([STOP] * 3)).stopped


def test_a_stop_whose_bit_is_late_ends_the_episode_a_round_later():
    """The others sample once more, and that round is paid like any other."""
    late = Game(Unreliable(BANDIT, late=1.0), ExactInference(), PRICE)
    states, rewards, ends = play(late, [(STOP, 0, 1), (0, 0, 0)])
    assert ends == [None, "stopped"]
    np.testing.assert_array_equal(states[1].memories.arrived, [False, True, True])
    gained = float(late.potential(states[1]) - late.potential(states[0]))
    np.testing.assert_allclose(rewards, [gained - PRICE, 0.0], atol=1e-6)


def test_an_action_that_is_not_allowed_is_executed_as_the_first_that_is():
    class Barred(Bandit):
        def action_mask(self, memory):
            return jnp.array([False, True])

    barred = Game(Barred(arms=2, players=3, horizon=6), ExactInference(), PRICE)
    state = barred.reset(jax.random.key(0))
    key = jax.random.key(1)
    asked, allowed = (barred.step(key, state, jnp.full(3, arm)) for arm in (0, 1))
    jax.tree.map(np.testing.assert_array_equal, asked, allowed)


def test_the_answer_is_the_most_probable_hypothesis_and_knows_whether_it_is_right(exact):
    states, _, _ = play(exact, [(0, 1, 1), (0, 0, 0)])
    answer = exact.answer(states[-1])
    chances = np.exp(np.asarray(BANDIT.hypotheses.log_probabilities(states[-1].scores)))
    np.testing.assert_array_equal(answer.answer, chances.argmax(axis=1))
    np.testing.assert_allclose(answer.confidence, chances.max(axis=1).prod(), rtol=1e-5)
    assert bool(answer.correct) == np.array_equal(answer.answer, states[-1].world.hypothesis)


def test_an_agent_observes_its_own_reading_itself_and_the_time(exact):
    states, _, _ = play(exact, [(0, 1, 1)])
    rows = np.asarray(exact.observations(states[1]))
    for agent, row in enumerate(rows):
        own = BANDIT.features(jax.tree.map(lambda x, i=agent: x[i], states[1].memories)).token
        np.testing.assert_array_equal(row[:4], own)
        np.testing.assert_array_equal(row[4:7], np.eye(3)[agent])
        np.testing.assert_allclose(row[7], 1 / BANDIT.horizon)


def test_another_agent_s_data_cannot_move_an_observation(exact):
    """Agents 1 and 2 do and see something else; agent 0 sees the same."""
    # capacities of 3 and means of 1: everybody is always paid
    sure = BanditWorld(jnp.array([2, 2], jnp.int8), jnp.ones(2))
    state = exact.reset(jax.random.key(0))._replace(world=sure)
    one = step(exact, jax.random.key(1), state, jnp.array([0, 0, 0])).state
    # capacity 1 of arm 1: agents 1 and 2 are not paid there
    tight = BanditWorld(jnp.array([2, 0], jnp.int8), jnp.ones(2))
    other = step(exact, jax.random.key(1), state._replace(world=tight), jnp.array([0, 1, 1])).state
    before, after = exact.observations(one), exact.observations(other)
    np.testing.assert_array_equal(before[0], after[0])
    assert not np.array_equal(before[1], after[1])
    assert not np.array_equal(exact.team_state(one), exact.team_state(other))  # the value sees everything


def test_the_team_s_state_is_its_view_and_the_time(exact):
    states, _, _ = play(exact, [(0, 1, 1), (1, 1, 1)])
    shown = np.asarray(exact.team_state(states[2]))
    np.testing.assert_array_equal(shown[:-1], BANDIT.team_features(states[2].memories).token)
    np.testing.assert_allclose(shown[-1], 2 / BANDIT.horizon)


def test_random_episodes_show_nothing_first_and_then_every_round(exact):
    views, truth = jax.jit(lambda key: random_episode(BANDIT, key))(jax.random.key(5))
    assert views.token.shape[0] == BANDIT.horizon
    assert truth.shape == (BANDIT.arms,)
    own = np.asarray(views.token[:, : 3 * 4])  # each agent: one-hot of its arm, paid or not
    np.testing.assert_array_equal(own.sum(axis=1), [0] + [3] * (BANDIT.horizon - 1))
