"""Labels of a teacher, against playing it; the loss by hand; and that actors do follow."""

import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import UserError
from icmape.baselines.by_name import find_teacher
from icmape.baselines.registry import baseline_team
from icmape.learning import train
from icmape.learning.check_config import check
from icmape.learning.config import Config, Teacher, with_algorithm
from icmape.learning.presets import preset
from icmape.learning.teacher import Labels, teacher_labels, with_teacher
from icmape.play.rollout import histories, play_greedy, policy_scores
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from tests.coins import Coins

BANDIT = Bandit(arms=2, players=3, horizon=12)
SETTINGS = {
    "num_envs": 40,
    "greedy_fraction": 0.2,
    "batch_size": 8,
    "buffer_size": 64,
    "learning_starts": 8,
    "iterations": 600,
    "network.hidden_size": 24,
    "actor_lr": 1e-2,
    "validation_interval": 60,
    "validation_episodes": 200,
    "settling_episodes": 4096,
    "dual.init": 0.03,
    "teacher.policy": "local-adaptive",
    "teacher.until": 1.0,
}


@pytest.fixture(scope="module")
def team():
    return baseline_team("local-adaptive", BANDIT, level=0.95)


@pytest.fixture(scope="module")
def played(team):
    episodes = jax.jit(partial(play_greedy, BANDIT))(team.policy, jax.random.split(jax.random.key(0), 50))
    return episodes, jax.jit(jax.vmap(partial(histories, BANDIT)))(episodes)


def test_in_its_own_episodes_a_guide_would_choose_what_it_chose(team, played):
    episodes, seen = played
    config = override(with_algorithm(Config(), "guided"), SETTINGS)
    labels = jax.jit(lambda e, s: teacher_labels(BANDIT, config, team.policy, e, s, jnp.float32(0)))(episodes, seen)
    before = np.arange(BANDIT.horizon)[None] <= np.asarray(episodes.stop)[:, None]
    np.testing.assert_array_equal(labels.choices[before], episodes.actions[before])
    assert np.any(np.asarray(labels.choices)[before] == BANDIT.actions)  # STOP is among them


def test_rounds_that_are_not_asked_for_are_not_decided(team, played):
    episode, seen = jax.tree.map(lambda x: x[0], played)
    scores = jax.jit(partial(policy_scores, BANDIT))(team.policy, episode, seen, jnp.int32(3))
    assert np.all(scores[3:] == 0)
    assert np.all(np.any(scores[:3] != 0, axis=(1, 2)))


@pytest.mark.parametrize(("progress", "share"), [(0.0, 0.8), (0.2, 0.4), (0.4, 0.0), (0.9, 0.0)])
def test_the_guide_fades(team, played, progress, share):
    changes = {**SETTINGS, "teacher.weight": 0.8, "teacher.until": 0.4}
    config = override(with_algorithm(Config(), "guided"), changes)
    labels = teacher_labels(BANDIT, config, team.policy, *played, jnp.float32(progress))
    np.testing.assert_allclose(labels.share, share, atol=1e-6)
    if share == 0:
        assert np.all(np.asarray(labels.choices) == 0)  # nobody looked


def test_loss_by_hand():
    """Two agents, one round: 0.7 of 5, and 0.3 of -½ (log ¼ + log ½)."""
    scores = jnp.log(jnp.array([[[[0.25, 0.25, 0.5], [0.25, 0.25, 0.5]]]]))
    labels = Labels(jnp.array([[[0, 2]]]), jnp.ones((1, 3), bool), jnp.array([0.3]))
    everyone = jnp.ones((1, 1, 2), bool)
    found = with_teacher(jnp.float32(5), scores, labels, everyone)
    np.testing.assert_allclose(found, 3.5 - 0.15 * np.log(0.25 * 0.5), rtol=1e-6)
    assert with_teacher(jnp.float32(5), scores, None, everyone) == 5


@pytest.mark.parametrize("name", ["guided", pytest.param("td3", marks=pytest.mark.slow)])
def test_actors_come_to_do_what_the_guide_does(team, played, name):
    """Choices in the teacher's own episodes, after a few iterations in which its share is near 1."""
    changes = SETTINGS | {"teacher.weight": 1.0} | ({"gradient_steps": 8, "batch_size": 32} if name == "td3" else {})
    config = override(with_algorithm(Config(), name), changes)
    states = train.start(BANDIT, config, jnp.array([0]))
    episodes, seen = played
    exists = np.arange(BANDIT.horizon)[None] <= np.asarray(episodes.stop)[:, None]

    def agreement(states) -> float:
        actors = jax.tree.map(lambda x: x[0], states.learner.actors)
        scores = jnp.swapaxes(jax.jit(jax.vmap(actors.unroll))(seen.local), 1, 2)
        same = np.asarray(jnp.argmax(scores, axis=-1)) == np.asarray(episodes.actions)
        return float(same[exists].mean())

    assert agreement(states) < 0.6
    states, _ = train.advance(BANDIT, config, states, jnp.int32(0), jnp.int32(30), team.policy)
    assert float(states.price.step_cost[0]) == pytest.approx(0.03)  # its price waits until the team is on its own
    assert agreement(states) > 0.8


# -- what cannot be followed


def test_a_guide_that_reads_everyones_data_is_refused():
    config = override(Config(), {"teacher": {"policy": "open-loop-global-stop", "weight": 1.0}})
    with pytest.raises(UserError, match="reads everyone's data"):
        find_teacher(preset("bandit-quick").build(), config)


def test_a_baseline_for_another_problem_is_refused():
    config = override(Config(), {"teacher": {"policy": "local-adaptive", "weight": 1.0}})
    with pytest.raises(UserError, match="is for bandit or hotspot; given was a Coins"):
        find_teacher(Coins(), config)


def test_without_a_name_there_is_no_guide():
    assert find_teacher(BANDIT, Config()) is None


@pytest.mark.parametrize(
    ("teacher", "message"),
    [
        (Teacher(policy="local-adaptive"), "teacher.weight is 0"),
        (Teacher(weight=1.0), "nobody to follow.*--teacher.policy"),
    ],
)
def test_a_guide_needs_a_name_and_a_share(teacher, message):
    with pytest.raises(UserError, match=message):
        check(override(Config(), {"teacher": teacher}), BANDIT)


@pytest.mark.parametrize("name", ["open-loop", "random"])
def test_a_guide_without_a_stop_of_its_own_says_nothing_about_it(name, played):
    """It teaches what to sample; were its never stopping a label, the team would learn never to stop."""
    config = override(with_algorithm(Config(), "guided"), SETTINGS | {"teacher.policy": name})
    teacher = find_teacher(BANDIT, config)
    labels = jax.jit(lambda e, s: teacher_labels(BANDIT, config, teacher, e, s, jnp.float32(0)))(*played)
    assert np.all(np.asarray(labels.choices) < BANDIT.actions)
    scores = jax.random.normal(jax.random.key(0), (*labels.choices.shape, BANDIT.actions + 1))
    counted = jnp.ones(labels.choices.shape, bool)
    loss = lambda scores: with_teacher(jnp.zeros(()), scores, labels, counted)  # noqa: E731
    slope = np.asarray(jax.grad(loss)(scores))
    assert np.abs(slope[..., :-1]).max() > 0
    assert np.all(slope[..., -1] == 0)


def test_where_agents_have_no_stop_none_is_a_label(team, played):
    config = override(with_algorithm(Config(), "guided"), SETTINGS | {"stopping": "threshold"})
    labels = jax.jit(lambda e, s: teacher_labels(BANDIT, config, team.policy, e, s, jnp.float32(0)))(*played)
    assert np.all(np.asarray(labels.choices) < BANDIT.actions)


def test_a_guide_is_found_with_the_cores_packages_alone():
    """In a fresh process in which what the core does without cannot be imported."""
    code = """
import sys
sys.modules.update(dict.fromkeys(("scipy", "safetensors", "tyro", "rich", "matplotlib", "tinygp")))
from icmape.baselines.by_name import find_teacher
from icmape.learning.config import Config
from icmape.settings import override
from icmape.zoo.bandit import Bandit
config = override(Config(), {"delta": 0.4, "teacher": {"policy": "open-loop-local-stop", "weight": 1.0}})
assert find_teacher(Bandit(arms=1, players=2, horizon=6), config) is not None
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_values_cannot_follow():
    changes = {"teacher.policy": "local-adaptive", "teacher.weight": 1.0}
    with pytest.raises(UserError, match="only actors can follow a teacher"):
        check(override(with_algorithm(Config(), "vdn"), changes), BANDIT)
