"""Learning with maps: every algorithm runs on source localization, and what is read of stored episodes is right."""

from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.baselines.registry import baseline_team
from icmape.errors import UserError
from icmape.learning import teacher as guide_module
from icmape.learning import train
from icmape.learning.check_config import check
from icmape.learning.config import Config, with_algorithm
from icmape.learning.inference_loss import scores_at_stop
from icmape.networks import Actors, make_inference
from icmape.play.inference import NetworkInference
from icmape.play.policy import LearnedPolicy
from icmape.play.rollout import Episode, histories, memories_at, play_greedy
from icmape.play.stop import LearnedStop
from icmape.play.team import Team
from icmape.play.team_files import load
from icmape.problem import Centralized, Problem
from icmape.settings import override
from icmape.zoo.signal.signal import Signal
from tests.support import QUICK_TO_COMPILE, drawn, script

SETTINGS = {
    "iterations": 4,
    "num_envs": 12,
    "greedy_fraction": 0.34,
    "gradient_steps": 2,
    "batch_size": 4,
    "buffer_size": 32,
    "learning_starts": 8,
    "max_rounds": 4,
    "network.hidden_size": 8,
    "validation_interval": 1,
    "validation_episodes": 8,
    "settling_episodes": 64,
    "plan.iterations": 0,
}

GUIDED = override(with_algorithm(Config(), "guided"), {**SETTINGS, "teacher.policy": "local-greedy"})


@cache
def problem() -> Signal:
    return Signal(grid=6, window=3, move=3, distance=3, horizon=6)


SLOW = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("td3", "vdn", "iql", "random", "td3-paper", "centralized dqn")
]


@pytest.mark.parametrize("name", ["ppo", *SLOW])
def test_every_learner_runs_on_maps_as_it_is(name):
    """An iteration of each: what it learns moves, nothing breaks, STAY is never chosen and no episode is longer."""
    posed: Problem = Centralized(problem()) if "centralized" in name else problem()
    own = {"network.share_weights": name != "ppo"}  # weights of each agent's own are as much again to compile
    config = override(with_algorithm(Config(), name.split()[-1]), {**SETTINGS, **own})
    check(config, posed)
    states = start(posed, config)
    after, metrics = advance(posed, config, states)
    assert int(after.fault[0]) == 0
    assert all(np.isfinite(value).all() for value in metrics.values())
    moved = [np.any(a != b) for a, b in zip(*map(jax.tree.leaves, (states.learner, after.learner)), strict=True)]
    assert np.mean(moved) > 0.5
    played = after.replay.episodes
    assert played.actions.shape[2] == config.max_rounds
    if "centralized" not in name:
        assert not np.any(np.asarray(played.actions) == 4)
    assert float(metrics["tau"][0]) <= config.max_rounds


def start(posed: Problem, config: Config) -> train.TrainState:
    seeds = jnp.asarray([3], jnp.int32)
    compiled = train.start.lower(posed, config, seeds).compile(compiler_options=QUICK_TO_COMPILE)
    return compiled(posed, config, seeds)


def advance(posed: Problem, config: Config, states: train.TrainState) -> tuple:
    copies = jax.tree.map(lambda leaf: leaf.copy(), states)
    span = jnp.int32(0), jnp.int32(1)
    compiled = train.advance.lower(posed, config, copies, *span).compile(compiler_options=QUICK_TO_COMPILE)
    return compiled(posed, config, copies, *span)


def test_a_guides_labels_are_the_same_a_few_episodes_at_a_time(monkeypatch):
    """A teacher with large beliefs is asked in parts."""
    teacher = baseline_team("local-greedy", problem(), level=0.5).policy
    seen = jax.jit(jax.vmap(partial(histories, problem())))(episodes())

    def labels() -> np.ndarray:
        ask = lambda e, s: guide_module.teacher_labels(problem(), GUIDED, teacher, e, s, jnp.float32(0.0))  # noqa: E731
        return np.asarray(jax.jit(ask)(episodes(), seen).choices)

    together = labels()
    monkeypatch.setattr(guide_module, "AT_ONCE", 1)
    np.testing.assert_array_equal(labels(), together)
    assert len(np.unique(together[:, :2])) > 1


# -- stored episodes


@cache
def episodes() -> Episode:
    route = [[1, 1, 3], [3, 2, 0], [0, 0, 5]]
    keys = jax.random.split(jax.random.key(0), 3)
    return jax.jit(lambda k: play_greedy(problem(), script(problem(), route), k))(keys)


@pytest.mark.parametrize("kind", ["recurrent", "correlating"])
def test_scores_of_stored_episodes_are_those_of_unrolled_views(kind):
    """Round by round, and at the stop alone."""
    network = drawn(partial(make_inference, problem(), 8, "paper+last", kind, key=jax.random.key(0)), scale=0.2)

    @jax.jit
    def three_ways(episode):
        whole = network.unroll(histories(problem(), episode).team)
        return whole, NetworkInference(network).unroll(problem(), episode), scores_at_stop(problem(), network, episode)

    episode = jax.tree.map(lambda x: x[1], episodes())
    whole, stepped, last = three_ways(episode)
    np.testing.assert_allclose(stepped[:3], whole[:3], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(last, whole[2], rtol=1e-4, atol=1e-4)


def test_memories_of_a_round_are_those_it_had():
    episode = jax.tree.map(lambda x: x[0], episodes())
    seen = jax.jit(partial(histories, problem()))(episode)
    memories = jax.jit(partial(memories_at, problem()))(episode, jnp.int32(2))
    grid = jax.vmap(problem().features)(memories).grid
    np.testing.assert_allclose(grid, seen.local.grid[:, 2], rtol=1e-6)


def test_a_team_with_maps_is_saved_loaded_and_acts_alone(tmp_path: Path):
    """The same scores from the file; and an agent by itself does what it does in the team."""
    make = partial(make_inference, problem(), 8, "paper+last", "default", key=jax.random.key(0))
    actors = drawn(lambda: Actors(problem(), 8, "paper+last", -1.0, False, key=jax.random.key(0)), scale=0.7)
    team = Team(problem(), LearnedPolicy(actors), LearnedStop(), NetworkInference(drawn(make, 1, 0.2)), 0.2)
    team.save(tmp_path / "team.safetensors")
    again = load(tmp_path / "team.safetensors")
    assert jax.tree.all(jax.tree.map(lambda a, b: jnp.array_equal(a, b), team, again))
    played = jax.jit(lambda k: play_greedy(problem(), team.behaviour(), k))(jax.random.split(jax.random.key(2), 2))
    episode = jax.tree.map(lambda x: x[0], played)
    seen = [jax.tree.map(lambda x, t=t: x[t, 2], episode.observations) for t in range(int(episode.stop) + 1)]
    with pytest.raises(UserError, match="before round 0"):
        again.agent(2)
    first = jax.tree.map(lambda x: x[0], episode.observations)
    assert again.posterior([], [], first).probabilities.shape == (36,)
    agent = again.agent(2, seen[0])
    for t in range(int(episode.stop)):
        assert agent.act() == int(episode.actions[t, 2])
        agent.see(int(episode.actions[t, 2]), seen[t + 1])
