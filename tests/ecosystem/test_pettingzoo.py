"""A problem as a PettingZoo environment: PettingZoo's own tests, whole episodes, and the worlds of an evaluation."""

import copy
import pickle
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

import icmape
from icmape.baselines.registry import baseline_team
from icmape.extras import extra_module
from icmape.networks import Inference
from icmape.play.episodes import play
from icmape.play.inference import NetworkInference
from icmape.play.open_loop import Schedule
from icmape.play.rollout import histories
from icmape.play.stop import FixedLength
from icmape.play.team import Team
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.signal.signal import Signal
from tests.coins import Coins
from tests.support import drawn

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


def untrained_team(problem):
    """A team with an inference network."""
    network = drawn(partial(Inference, problem, 4, "paper+last", key=jax.random.key(0)))
    return Team(problem, Schedule(jnp.zeros((1, 3), jnp.int32), 3), FixedLength(3), NetworkInference(network))


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
    other = pickle.loads(pickle.dumps(env))
    jax.tree.map(np.testing.assert_array_equal, episode(env, rows, seed=5), episode(other, rows, seed=5))


def copied_by_pickle(env):
    return pickle.loads(pickle.dumps(env))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, copied_by_pickle])
def test_a_copy_made_within_an_episode_goes_on_with_it(env, duplicate):
    """Also where the original plays on before the copy does, and into the next episode."""
    rows = [dict(zip(env.possible_agents, row, strict=True)) for row in [(0, 1, 1), (1, 1, 0), (0, 0, 1), (STOP, 0, 0)]]
    env.reset(seed=5)
    env.step(rows[0])
    other = duplicate(env)
    assert other.agents == env.agents == env.possible_agents
    ours = [env.state(), *(env.step(row) for row in rows[1:]), env.reset(), env.step(rows[0])]
    theirs = [other.state(), *(other.step(row) for row in rows[1:]), other.reset(), other.step(rows[0])]
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert duplicate(icmape.to_pettingzoo(BANDIT)).agents == []  # no episode has begun


def readings(env, **how):
    """What an episode shows in the next world."""
    return str(episode(env, [(0, 1, 1)] * BANDIT.horizon, **how))


@pytest.mark.parametrize("begun", [False, True])
def test_worlds_of_an_evaluation_begin_with_a_seed(env, begun):
    """A switch without one is refused, in both directions, and changes nothing."""
    same, other = {"evaluation": begun}, {"evaluation": not begun}
    first, second = readings(env, seed=3, options=same), readings(env)
    assert readings(env, seed=3, options=same) == first
    with pytest.raises(icmape.UserError, match=rf"evaluation {begun}; given {not begun}: give a seed"):
        env.reset(options=other)
    assert readings(env, options=same) == second
    assert readings(env, seed=3, options=other) != first


def test_a_seed_of_certificates_is_refused_and_changes_nothing(env):
    first, second = readings(env, seed=3), readings(env)
    assert readings(env, seed=3) == first
    with pytest.raises(icmape.UserError, match="reserved"):
        env.reset(seed=2**30, options={"evaluation": True})
    assert readings(env) == second


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


ALL = {"agent_0": 0, "agent_1": 0, "agent_2": 0}


@pytest.mark.parametrize(
    ("actions", "named"),
    [
        ({"agent_0": 0}, "agent_1 is missing"),
        ({**ALL, "agent_1": STOP + 1}, rf"must be 0\.\.{STOP} .*given \[0, {STOP + 1}, 0\]"),
        ({**ALL, "agent_1": 0.9}, r"a whole number; given agent_0: 0, agent_1: 0\.9"),
        ({**ALL, "agent_1": np.float32(1)}, "a whole number"),
        ({**ALL, "agent_1": None}, "a whole number; given .*agent_1: None"),
        ({**ALL, "agent_3": 1, "gauge": 0}, r"unknown agents in actions: \['agent_3', 'gauge'\]"),
    ],
)
def test_actions_that_make_no_sense_are_refused(env, actions, named):
    env.reset(seed=0)
    with pytest.raises(icmape.UserError, match=named):
        env.step(actions)


def test_whole_numbers_of_other_libraries_are_actions(env):
    def first_step(kind):
        env.reset(seed=0)
        return env.step({agent: kind(1) for agent in env.possible_agents})

    for kind in (np.int64, np.array, jax.numpy.int32):
        jax.tree.map(np.testing.assert_array_equal, first_step(kind), first_step(int))


def test_a_team_of_another_problem_is_refused():
    """By its problem if it is known, else by the shapes that its network reads and gives."""
    ours, theirs = Bandit(arms=2, players=3, horizon=6), Bandit(arms=3, players=3, horizon=6)
    team = untrained_team(theirs)
    assert icmape.to_pettingzoo(ours, untrained_team(ours)).game.inference.kind == "network"
    for make in (icmape.to_pettingzoo, icmape.to_jaxmarl):
        with pytest.raises(icmape.UserError, match=r"another problem \(actions: 3 of the team, 2 here"):
            make(ours, team)
    for inference in (team.inference, team.inference.network):
        with pytest.raises(icmape.UserError, match="the inference cannot read the data of this Bandit"):
            icmape.to_pettingzoo(ours, inference)
    with pytest.raises(icmape.UserError, match="problem: Bandit of the team, Coins here"):
        icmape.to_pettingzoo(Coins(), team)
