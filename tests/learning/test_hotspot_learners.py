"""Learning where worlds come from measurements: every algorithm that fits trains on a small hotspot problem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.baselines import rules
from icmape.baselines.by_name import find_frozen, find_teacher
from icmape.errors import UserError
from icmape.learning import train
from icmape.learning.check_config import check
from icmape.learning.config import Config, algorithms, with_algorithm
from icmape.play.open_loop import FixedLogits
from icmape.problem import Centralized, Problem
from icmape.settings import override
from icmape.zoo.hotspot import prior_map
from tests.support import QUICK_TO_COMPILE
from tests.zoo.hotspots import small_hotspot

SETTINGS = {
    "iterations": 8,
    "num_envs": 12,
    "greedy_fraction": 0.34,
    "gradient_steps": 2,
    "batch_size": 4,
    "buffer_size": 32,
    "learning_starts": 8,
    "max_rounds": 4,
    "network.hidden_size": 8,
    "network.inference": "dense",  # the quickest to compile
    "validation_interval": 2,
    "validation_episodes": 8,
    "settling_episodes": 64,
    "plan.iterations": 0,
}
FAST = ("guided", "gp-map")  # guided is ppo with a teacher, and gp-map is random with a map
OTHERS = [name for name in algorithms() if name not in FAST and not name.startswith("thompson")]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in (*OTHERS, "centralized dqn")]


@pytest.mark.parametrize("name", [*FAST, *SLOW])
def test_every_learner_that_fits_runs_as_it_is(name, monkeypatch):
    """Three iterations of each: what it learns moves, nothing breaks, and nobody leaves the map."""
    monkeypatch.setattr(prior_map, "READINGS", 100)  # for the maps, which then take less time
    posed: Problem = Centralized(small_hotspot()) if "centralized" in name else small_hotspot()
    config = with_algorithm(Config(), name.split()[-1])
    own = {"teacher.policy": "reading-list"} if name == "guided" else {}
    own |= {"network.inference": "paper"} if name == "td3-paper" else {}
    config = override(config, {**SETTINGS, **own})
    check(config, posed)
    states, after, metrics = trained(posed, config)
    assert int(after.fault[0]) == 0
    assert all(np.isfinite(value).all() for value in metrics.values())
    moved = [np.any(a != b) for a, b in zip(*map(jax.tree.leaves, (states.learner, after.learner)), strict=True)]
    assert np.mean(moved) > 0.5
    played = after.replay.episodes
    assert np.asarray(played.actions).max() <= posed.actions
    assert np.all(np.isfinite(np.asarray(played.observations, np.float32)))
    assert np.asarray(played.observations, np.float32).max() > 0
    assert 1 <= float(metrics["tau"][0]) <= config.max_rounds
    if name.startswith("gp-map"):
        policy = after.learner.actors
        assert isinstance(policy, FixedLogits)
        for old, new in zip(jax.tree.leaves(states.learner.actors), jax.tree.leaves(policy), strict=True):
            np.testing.assert_array_equal(old, new)


def trained(posed: Problem, config: Config) -> tuple[train.TrainState, train.TrainState, dict]:
    """States before and after three iterations, the second of which ends with a validation."""
    seeds, span = jnp.asarray([3], jnp.int32), (jnp.int32(0), jnp.int32(3))
    given = posed, config, seeds, None, find_frozen(posed, config)
    states = train.start.lower(*given).compile(compiler_options=QUICK_TO_COMPILE)(*given)
    copies, teacher = jax.tree.map(lambda leaf: leaf.copy(), states), find_teacher(posed, config)
    go_on = train.advance.lower(posed, config, copies, *span, teacher).compile(compiler_options=QUICK_TO_COMPILE)
    after, metrics = go_on(posed, config, copies, *span, teacher)
    return states, after, metrics


@pytest.mark.parametrize("name", ["thompson", "thompson-paper"])
def test_what_is_for_another_problem_is_refused(name):
    config = override(with_algorithm(Config(), name), SETTINGS)
    with pytest.raises(UserError, match=f"the policy {name} is for signal, agents apart; given was a Hotspot"):
        find_frozen(small_hotspot(), config)


def test_a_map_for_agents_seen_as_one_is_refused():
    config = override(with_algorithm(Config(), "gp-map"), SETTINGS)
    with pytest.raises(UserError, match="gp-map is for hotspot, agents apart; given was a Centralized"):
        find_frozen(Centralized(small_hotspot()), config)


def test_who_follows_must_say_whom():
    config = override(with_algorithm(Config(), "guided"), SETTINGS)
    with pytest.raises(UserError, match="nobody to follow"):
        check(config, small_hotspot())


def test_a_guide_that_reads_everyones_data_is_refused_before_its_level_is_tuned(monkeypatch):
    """Tuning takes minutes."""
    monkeypatch.setattr(rules, "tune", lambda team: pytest.fail("its level was tuned"))
    config = override(with_algorithm(Config(), "guided"), {**SETTINGS, "teacher.policy": "central-adaptive"})
    with pytest.raises(UserError, match="central-adaptive reads everyone's data"):
        find_teacher(small_hotspot(), config)
