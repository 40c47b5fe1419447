"""A problem as a PettingZoo environment: PettingZoo's own tests, whole episodes, and the worlds of an evaluation."""

import pickle
import sys

import jax
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

import icmape
from icmape.baselines.registry import baseline_team
from icmape.extras import extra_module
from icmape.play.episodes import play
from icmape.play.rollout import histories
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.signal.signal import Signal
from tests.coins import Coins

BANDIT = Bandit(arms=2, players=3, horizon=6)
STOP = BANDIT.actions


def episode(env, actions, seed=None, options=None):
    """All that an episode shows, until it ends; `actions` gives a row for every round."""
    shown = [env.reset(seed=seed, options=options)]
    for row in actions:
        shown.append(env.step(dict(zip(env.possible_agents, row, strict=True))))
        if not env.agents:
            break
    return shown


def random_rows(seed):
    """Actions of agents that never stop."""
    rng = np.random.default_rng(seed)
    while True:
        yield rng.integers(0, STOP, 3)


@pytest.fixture(scope="module")
def env():
    return icmape.to_pettingzoo(BANDIT)


def test_pettingzoo_s_own_tests_pass(env, capsys):
    parallel_api_test(env, num_cycles=50)
    parallel_seed_test(lambda: icmape.to_pettingzoo(BANDIT), num_cycles=50)


def test_the_seed_decides_whole_episodes_and_the_next_ones(env):
    def two_episodes(seed):
        rows = random_rows(0)
        return episode(env, rows, seed=seed), episode(env, rows)

    first, again, other = two_episodes(7), two_episodes(7), two_episodes(8)
    jax.tree.map(np.testing.assert_array_equal, first, again)
    assert [len(shown) for shown in first] == [BANDIT.horizon] * 2
    assert str(first) != str(other)
    assert str(first[0]) != str(first[1])  # the second episode is in another world


@pytest.mark.parametrize("who", range(3))
def test_any_stop_terminates_all_and_the_horizon_truncates(env, who):
    stopping = [(0, 1, 1), tuple(STOP if agent == who else 0 for agent in range(3))]
    _, rewards, terminated, truncated, infos = episode(env, stopping, seed=0)[-1]
    assert set(terminated.values()) == {True}
    assert set(truncated.values()) == {False}
    assert set(rewards.values()) == {0.0}
    assert {info["tau"] for info in infos.values()} == {2}  # the stop round is the second
    shown = episode(env, [(0, 1, 1)] * BANDIT.horizon, seed=0)
    _, _, terminated, truncated, infos = shown[-1]
    assert len(shown) - 1 == BANDIT.horizon - 1
    assert set(truncated.values()) == {True}
    assert set(terminated.values()) == {False}
    assert infos["agent_0"]["tau"] == BANDIT.horizon
    with pytest.raises(icmape.UserError, match="reset"):
        env.step({agent: 0 for agent in env.possible_agents})


def test_a_team_plays_the_worlds_of_its_evaluation(env):
    """Its actions there give the same observations, answers and lengths here, world by world."""
    team = baseline_team("local-adaptive", BANDIT, delta=0.3, level=0.7)
    played = play(team, 8, seed=3)
    for world in range(8):
        rows = played.played.actions[world]
        stop = int(played.played.stop[world])
        shown = episode(env, rows, seed=3 if world == 0 else None, options={"evaluation": True})
        one = jax.tree.map(lambda x, w=world: x[w], played.played)
        tokens = np.asarray(histories(BANDIT, one).local.token)  # agents, rounds
        for number in range(stop + 1):
            rows_shown = np.stack(list(shown[number][0].values()))
            np.testing.assert_array_equal(rows_shown[:, : tokens.shape[2]], tokens[:, number])
        info = shown[-1][4]["agent_0"]
        assert info["tau"] == stop + 1
        assert info["correct"] == played.team.correct[world, stop]
        np.testing.assert_allclose(info["confidence"], played.team.confidence[world, stop], rtol=1e-5)
        np.testing.assert_array_equal(info["truth"], played.played.hypothesis[world])


def test_a_copy_in_another_process_plays_the_same(env):
    rows = [(0, 1, 1), (1, 1, 0), (STOP, 0, 0)]
    copy = pickle.loads(pickle.dumps(env))
    jax.tree.map(np.testing.assert_array_equal, episode(env, rows, seed=5), episode(copy, rows, seed=5))


def test_observations_of_a_problem_with_a_grid_are_one_row():
    env = icmape.to_pettingzoo(Signal(grid=12, window=3, move=3, distance=4, horizon=4))
    observations, infos = env.reset(seed=0)
    token, grid = env.sizes.token, env.sizes.grid
    row = observations["agent_0"]
    assert env.observation_space("agent_0").contains(row)
    assert row.shape == (token + int(np.prod(grid)) + env.game.problem.agents + 1,)
    assert env.state_space.contains(env.state())
    assert infos["agent_0"]["action_mask"].shape == (env.game.problem.actions + 1,)


def test_without_an_exact_posterior_the_inference_must_be_given():
    class Unknown(Coins):
        posterior = "none"

    with pytest.raises(icmape.UserError, match="pass an inference"):
        icmape.to_pettingzoo(Unknown())


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    monkeypatch.delitem(sys.modules, "icmape.ecosystem.pettingzoo_environment", raising=False)
    with pytest.raises(icmape.UserError, match=r"pip install 'icmape\[pettingzoo\]'"):
        icmape.to_pettingzoo(BANDIT)
    with pytest.raises(ModuleNotFoundError):  # a fault of our own is no missing package
        extra_module("icmape.ecosystem.no_such_module", "pettingzoo", "this")


@pytest.mark.parametrize("actions", [{"agent_0": 0}, {"agent_0": 0, "agent_1": STOP + 1, "agent_2": 0}])
def test_actions_that_make_no_sense_are_refused(env, actions):
    env.reset(seed=0)
    with pytest.raises(icmape.UserError, match=r"agent_1|given"):
        env.step(actions)
