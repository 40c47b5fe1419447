"""What an experiment can leave out: the confidence reward, the learned stop, the learned policy."""

import dataclasses
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.baselines.by_name import find_frozen
from icmape.learning import frozen, replay, train
from icmape.learning.check_config import check
from icmape.learning.config import Config, Frozen, algorithms, with_algorithm
from icmape.learning.inference_loss import judge
from icmape.learning.off_policy import Turn
from icmape.learning.optimize import adam
from icmape.learning.returns import episode_rewards
from icmape.learning.scores import joint_scores
from icmape.learning.soft_stops import stops_of
from icmape.networks import Inference
from icmape.play.inference import ExactInference
from icmape.play.open_loop import Schedule
from icmape.play.policy import LearnedPolicy
from icmape.play.rollout import Noise, histories, play_greedy, rollout
from icmape.play.stop import FixedLength, LearnedStop
from icmape.play.team import Team
from icmape.problem import Centralized
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from tests.learning.test_algorithms import COST, SETTINGS
from tests.support import QUICK_TO_COMPILE, drawn, lively_actors, once

PROBLEM = Bandit(arms=2, players=3, horizon=7, team_tokens="readings")
WORLDS = 24
STOP = PROBLEM.actions
INFERENCE = drawn(lambda: Inference(PROBLEM, 6, "paper+last", key=jax.random.key(0)), seed=1, scale=1.5)
KEYS = jax.random.split(jax.random.key(3), WORLDS)


# -- the problem's own reward


def test_payoffs_replace_confidence_and_stop_is_worth_nothing():
    confidence, payoff = jnp.array([0.2, 0.9, 0.4]), jnp.array([0.5, 0.25, 0.0])
    rewards = episode_rewards(confidence, payoff, jnp.float32(0.1), 0.1, shaped=True)
    np.testing.assert_allclose(rewards.going_on, [0.4, 0.15, -0.1], atol=1e-6)
    np.testing.assert_array_equal(rewards.stopping, 0.0)


def test_stored_payoffs_are_what_each_round_paid():
    """The mean of the players' readings, which are seen in the round after; nothing from the stop on."""
    noise, explorers = Noise(jnp.full(WORLDS, 0.3), jnp.full(WORLDS, 0.5)), jnp.zeros(WORLDS, bool)
    policy = LearnedPolicy(lively_actors())
    episode = once(lambda: rollout(PROBLEM, policy, noise, KEYS, explorers, payoffs=True))
    readings = np.asarray(episode.observations, np.float64)
    assert len(set(np.asarray(episode.stop).tolist())) > 1
    for world, stop in enumerate(np.asarray(episode.stop)):
        paid = np.zeros(PROBLEM.horizon)
        paid[:stop] = readings[world, 1 : stop + 1].mean(axis=1)
        np.testing.assert_allclose(episode.payoff[world], paid, atol=1e-6)
    assert np.asarray(episode.payoff).max() > 0


# -- the threshold


def test_a_threshold_ends_episodes_where_the_confidence_first_reaches_it():
    """Whatever the agents want: they would stop elsewhere. At the horizon STOP is forced as ever."""
    config = override(Config(), {"stopping": "threshold", "delta": 0.3})
    policy = LearnedPolicy(lively_actors())
    stopping = train.stopping_policy(PROBLEM, config, policy, INFERENCE)

    def play() -> tuple:
        episode = play_greedy(PROBLEM, stopping, KEYS)
        seen = jax.vmap(lambda e: histories(PROBLEM, e))(episode)
        scores = joint_scores(config, policy.actors, seen)
        return episode, judge(PROBLEM, INFERENCE, seen.team, episode).confidence, scores

    episode, confidence, scores = once(play)
    sure = np.asarray(confidence) >= 0.7
    sure[:, -1] = True
    np.testing.assert_array_equal(episode.stop, sure.argmax(axis=1))
    assert len(set(np.asarray(episode.stop).tolist())) > 3
    stops = np.asarray(episode.actions) == STOP
    at_stop = np.arange(PROBLEM.horizon)[None] == np.asarray(episode.stop)[:, None]
    np.testing.assert_array_equal(stops, np.broadcast_to(at_stop[..., None], stops.shape))  # all at once, or nobody
    np.testing.assert_array_equal(scores[..., -1], -1e9)  # to the learner STOP is out of reach
    assert train.stopping_policy(PROBLEM, Config(), policy, INFERENCE) is policy


CONFIDENCE = jnp.array([[0.2, 0.7, 0.75, 0.8, 0.9], [0.1, 0.69, 0.3, 0.7, 0.2], [0.1, 0.2, 0.69, 0.5, 0.4]])
ENDS = [1, 3, 4]  # where it first reaches 0.7, or the last round


@pytest.mark.parametrize("name", ["ppo", "td3"])
def test_soft_stops_end_exactly_where_the_confidence_reaches_a_threshold(name):
    """Whatever the agents' own chances of going on: they have no say. What chance ends it still ends."""
    config = override(with_algorithm(Config(), name), {"stopping": "threshold", "delta": 0.3})
    going = jnp.asarray(np.random.default_rng(0).uniform(0.1, 0.9, (3, 5, 2)), jnp.float32)
    soft = stops_of(config, going, CONFIDENCE)
    np.testing.assert_array_equal(soft.stops, np.eye(5)[ENDS])
    np.testing.assert_array_equal(soft.reached, np.arange(5)[None] <= np.array(ENDS)[:, None])
    np.testing.assert_array_equal(soft.played, np.arange(5)[None] < np.array(ENDS)[:, None])
    by_chance = stops_of(config, going, CONFIDENCE, 0.25)
    np.testing.assert_allclose(by_chance.stops[0], [0.25, 0.75, 0.0, 0.0, 0.0], atol=1e-6)
    learned = stops_of(override(config, {"stopping": "learned"}), going, CONFIDENCE)
    np.testing.assert_allclose(learned.stops[:, 0], 1 - np.prod(going[:, 0], axis=-1), atol=1e-6)


# -- a policy that does not learn


def with_team(team: Team, path: Path) -> Config:
    """Settings that name a saved team as the policy."""
    team.save(path)
    settings = {
        "greedy_fraction": 0.5,
        "network.hidden_size": 4,
        "gradient_steps": 30,
        "batch_size": 64,
        "inference_lr": 0.02,
        "final_lr_fraction": 1.0,
    }
    config = override(dataclasses.replace(Config(), algorithm=Frozen(str(path))), settings)
    check(config, PROBLEM)
    return config


def test_a_saved_team_lends_its_policy(tmp_path: Path):
    team = Team(PROBLEM, LearnedPolicy(lively_actors()), LearnedStop(), ExactInference())
    config = with_team(team, tmp_path / "team.safetensors")
    assert eqx.tree_equal(find_frozen(PROBLEM, config), team.policy, typematch=True)


def test_inference_is_trained_on_what_a_saved_team_samples(tmp_path: Path):
    """The schedule is played as it is written, and stays; the inference network learns from it."""
    plan = Schedule(jnp.array([[0, 1, 1], [1, 0, 0]]), 3)
    config = with_team(Team(PROBLEM, plan, FixedLength(4), ExactInference()), tmp_path / "team.safetensors")

    def train_inference() -> tuple:
        learner = frozen.init(PROBLEM, config, adam(1.0), plan, key=jax.random.key(0))
        explorers = jnp.zeros(64, bool)
        keys = jax.random.split(jax.random.key(1), 64)
        episodes = train.play(PROBLEM, config, plan, learner.slow_inference, jnp.zeros(()), keys, explorers)
        memory = replay.push(replay.empty(episodes, 64), episodes)

        def learn(learner: frozen.Learner, number: jax.Array) -> tuple:
            turn = Turn(episodes, memory, jnp.zeros(()), number, jnp.float32(4))
            return frozen.learn(PROBLEM, config, learner, turn, key=jax.random.fold_in(jax.random.key(2), number))

        return learner, episodes, *jax.lax.scan(learn, learner, jnp.arange(3))

    before, episodes, after, losses = once(train_inference)
    assert eqx.tree_equal(after.actors, plan)
    assert eqx.tree_equal(after.target_actors, before.actors)
    assert float(losses["inference_loss"][-1]) < float(losses["inference_loss"][0]) - 0.1
    for leaf, was in zip(jax.tree.leaves(after.slow_inference), jax.tree.leaves(before.slow_inference), strict=True):
        assert np.any(leaf != was)
    np.testing.assert_array_equal(episodes.actions[:, :6], np.tile([[0, 1, 1], [1, 0, 0]], (64, 3, 1)))
    assert not np.any(episodes.explored)


# -- all of them with all algorithms


FROZEN = {name for name in algorithms() if name.startswith(("random", "thompson", "gp-map"))}
ABLATIONS = [{"reward": "environment"}, {"stopping": "threshold"}, {"cost": "none"}]


@pytest.mark.slow  # a program each
@pytest.mark.parametrize("changes", ABLATIONS, ids=[next(iter(a.values())) for a in ABLATIONS])
@pytest.mark.parametrize("name", sorted(set(algorithms()) - FROZEN - {"guided"}))  # which is ppo
def test_every_algorithm_trains_under_every_ablation(name, changes):
    """Twenty iterations without a fault, in which every network moves; and rounds that cost nothing stay free."""
    inner = Bandit(arms=2, players=2, horizon=4)
    problem = Centralized(inner) if name == "dqn" else inner
    config = override(with_algorithm(Config(), name), {**SETTINGS, "iterations": 20, **changes})
    check(config, problem)
    seeds = jnp.asarray(config.seeds, jnp.int32)
    begin = train.start.lower(problem, config, seeds).compile(compiler_options=QUICK_TO_COMPILE)
    begun = begin(problem, config, seeds)
    before = jax.tree.map(np.asarray, begun.learner)
    program = train.advance.lower(problem, config, begun, jnp.int32(0), jnp.int32(1)).compile(
        compiler_options=QUICK_TO_COMPILE
    )
    after, metrics = program(problem, config, begun, jnp.int32(0), jnp.int32(20))
    assert int(after.fault[0]) == 0
    assert all(np.isfinite(value[0]) for value in metrics.values())
    for field in before._fields:
        networks = getattr(before, field), getattr(after.learner, field)
        assert not eqx.tree_equal(*networks), field
    assert float(after.price.step_cost[0]) == pytest.approx(0.0 if "cost" in changes else COST)
