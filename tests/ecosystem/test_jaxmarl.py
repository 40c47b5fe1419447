"""A problem as a JaxMARL environment: what JaxMARL's own environment tests check, and what its learners rely on."""

import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import icmape
from icmape.zoo.bandit.bandit import Bandit

BANDIT = Bandit(arms=2, players=3, horizon=6)
STOP = BANDIT.actions
WORLDS = 16
ROOT = Path(__file__).parents[2]
PRESETS = ["bandit-quick", "bandit-a3p5", "signal-quick"]
THEIRS = "tests/test_envs_implement_base_api.py"  # in JaxMARL's source
SOURCE = Path(sys.prefix, "sources", f"jaxmarl-{version('jaxmarl')}.tar.gz")  # which `make test` downloads


@pytest.fixture(scope="module", autouse=True)
def standard_promotion():
    """JaxMARL mixes types as JAX does by default."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture(scope="module")
def env():
    return icmape.to_jaxmarl(BANDIT)


def joint(env, rows):
    return dict(zip(env.agents, jnp.asarray(rows), strict=True))


def source_of(path: str) -> str:
    """A file of JaxMARL's source archive."""
    with tarfile.open(SOURCE) as archive:
        file = archive.extractfile(f"{SOURCE.name.removesuffix('.tar.gz')}/{path}")
        assert file is not None
        return file.read().decode()


@pytest.mark.skipif(
    not SOURCE.exists() and not os.environ.get("ICMAPE_REQUIRE_SOURCES"),
    reason=f"JaxMARL's source archive could not be downloaded: there is no {SOURCE.name}",
)
def test_jaxmarl_s_own_tests_of_environments_pass(tmp_path):
    """Its file, of the installed version; only `make` and the list of environments are ours."""
    text, lists = re.subn(r"(?s)envs_to_test = \[.*?\n\]", f"envs_to_test = {PRESETS!r}", source_of(THEIRS))
    assert lists == 1
    theirs = tmp_path / Path(THEIRS).name
    theirs.write_text(text, encoding="utf-8")
    plugin = ["-p", "tests.ecosystem.jaxmarl_ours", "-p", "no:cacheprovider", "--import-mode=importlib"]
    command = [sys.executable, "-m", "pytest", "-v", *plugin, "-c", os.devnull, str(theirs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in PRESETS:
        assert re.search(rf"::\S+\[{name}\S*\] PASSED", done.stdout), done.stdout


def test_the_methods_of_a_multiagentenv_give_what_its_spaces_say(env):
    """What `tests/test_envs_implement_base_api.py` of JaxMARL is about, restated from the base class of its wheel.

    The test above runs that file where JaxMARL's source can be had. Methods are in the order of
    `jaxmarl/environments/multi_agent_env.py`.
    """
    from jaxmarl.environments import MultiAgentEnv
    from jaxmarl.environments.spaces import Space

    assert isinstance(env, MultiAgentEnv)
    assert env.agents == [f"agent_{number}" for number in range(env.num_agents)]
    assert set(env.observation_spaces) == set(env.action_spaces) == set(env.agents)
    observations, state = env.reset(jax.random.PRNGKey(0))
    actions = {agent: env.action_space(agent).sample(jax.random.PRNGKey(1)) for agent in env.agents}
    for advance in (env.step, env.step_env):
        later, after, rewards, dones, infos = advance(jax.random.PRNGKey(2), state, actions)
        assert jax.tree.structure(after) == jax.tree.structure(state)
        assert set(rewards) == set(env.agents)
        assert set(dones) == {*env.agents, "__all__"}
        assert set(later) == set(observations) == {*env.agents, "world_state"}
        assert {x.shape for x in (*rewards.values(), *dones.values())} == {()}
        assert {x.dtype for x in dones.values()} == {jnp.dtype(bool)}
        assert {info.shape for info in infos.values()} == {(env.num_agents,)}
    jax.tree.map(np.testing.assert_array_equal, env.get_obs(state), observations)
    masks = env.get_avail_actions(state)
    assert set(masks) == set(env.agents)
    for agent in env.agents:
        space, choices = env.observation_space(agent), env.action_space(agent)
        assert isinstance(space, Space)
        assert isinstance(choices, Space)
        assert choices.n == env.game.problem.actions + 1
        assert choices.contains(actions[agent])
        assert masks[agent].shape == (choices.n,)
        assert masks[agent].dtype == bool
        for rows in (observations, later):
            assert rows[agent].shape == space.shape
            assert rows[agent].dtype == space.dtype
            assert space.contains(rows[agent])
    assert observations["world_state"].shape == (env.state_size,)
    assert isinstance(env.name, str)
    assert sorted(agent for members in env.agent_classes.values() for agent in members) == sorted(env.agents)


def test_raw_and_typed_keys_begin_the_same_world(env):
    raw, typed = env.reset(jax.random.PRNGKey(3)), env.reset(jax.random.key(3))
    jax.tree.map(np.testing.assert_array_equal, raw, typed)


def test_a_stop_begins_a_fresh_episode_or_the_given_one(env):
    _, state = env.reset(jax.random.PRNGKey(0))
    _, other = env.reset(jax.random.PRNGKey(1))
    _, going, _, dones, _ = env.step(jax.random.PRNGKey(2), state, joint(env, [0, 1, 1]), reset_state=other)
    assert not dones["__all__"]
    assert int(going.number) == 1
    _, fresh, rewards, dones, _ = env.step(jax.random.PRNGKey(2), going, joint(env, [0, STOP, 1]))
    assert all(bool(done) for done in dones.values())
    assert [float(reward) for reward in rewards.values()] == [0.0] * 3
    assert int(fresh.number) == 0
    _, given, *_ = env.step(jax.random.PRNGKey(2), going, joint(env, [0, STOP, 1]), reset_state=other)
    jax.tree.map(np.testing.assert_array_equal, given, other)


def test_jaxmarl_s_log_counts_episodes_in_many_worlds_in_one_program(env):
    """Nobody stops: every episode has T-1 steps, and its return is what its rewards add up to."""
    from jaxmarl.wrappers.baselines import LogWrapper

    logged = LogWrapper(env)
    length = BANDIT.horizon - 1

    def step(state, key):
        actions = joint(env, jnp.zeros((3, WORLDS), jnp.int32))
        _, state, rewards, dones, infos = jax.vmap(logged.step)(jax.random.split(key, WORLDS), state, actions)
        return state, (rewards["agent_0"], dones["__all__"], infos)

    @jax.jit
    def play(key):
        _, state = jax.vmap(logged.reset)(jax.random.split(key, WORLDS))
        return jax.lax.scan(step, state, jax.random.split(key, 2 * length))[1]

    rewards, dones, infos = jax.tree.map(np.asarray, play(jax.random.PRNGKey(0)))
    ended = np.zeros(2 * length, bool)
    ended[[length - 1, 2 * length - 1]] = True
    np.testing.assert_array_equal(dones, np.broadcast_to(ended[:, None], dones.shape))
    np.testing.assert_array_equal(infos["truncated"][ended], 1.0)
    np.testing.assert_array_equal(infos["returned_episode_lengths"][ended], length)
    returns = rewards.reshape(2, length, WORLDS).sum(axis=1)
    np.testing.assert_allclose(infos["returned_episode_returns"][ended][:, :, 0], returns, atol=1e-5)
    assert set(np.unique(infos["correct"])) == {0.0, 1.0}


def test_its_rollout_manager_reads_rows_and_masks(env):
    from jaxmarl.wrappers.baselines import CTRolloutManager

    manager = CTRolloutManager(env, batch_size=WORLDS)
    rows, states = manager.batch_reset(jax.random.PRNGKey(0))
    assert rows["agent_0"].shape == (WORLDS, env.sizes.observation + 3)
    masks = jax.vmap(env.get_avail_actions)(states)
    assert masks["agent_2"].shape == (WORLDS, STOP + 1)
    _, _, rewards, *_ = manager.batch_step(jax.random.PRNGKey(1), states, joint(env, jnp.ones((3, WORLDS), jnp.int32)))
    np.testing.assert_allclose(rewards["__all__"], 3 * rewards["agent_0"], rtol=1e-6)


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxmarl", None)
    monkeypatch.setitem(sys.modules, "jaxmarl.environments.multi_agent_env", None)
    monkeypatch.delitem(sys.modules, "icmape.ecosystem.jaxmarl_environment", raising=False)
    with pytest.raises(icmape.UserError, match=r"pip install 'icmape\[jaxmarl\]'"):
        icmape.to_jaxmarl(BANDIT)
