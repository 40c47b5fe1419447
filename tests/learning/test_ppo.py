"""PPO's gradients and returns on cases small enough to enumerate or to work out by hand."""

import dataclasses
import itertools
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning import ppo
from icmape.learning import soft_stops as stops
from icmape.learning.config import PPO, Config, with_algorithm
from icmape.learning.inference_loss import judge, judge_exactly
from icmape.learning.off_policy import Turn
from icmape.learning.optimize import adam
from icmape.learning.ppo import Fresh, Learner
from icmape.learning.returns import soft_returns, soft_stops
from icmape.learning.scores import joint_scores
from icmape.learning.soft_stops import Weights
from icmape.play.rollout import Episode, histories
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from tests.support import drawn, once

AGENTS, ARMS, STOP = 2, 2, 2
ROUNDS = 3
CONFIG = with_algorithm(Config(), "ppo")
FREE = Weights(jnp.float32(0.0), jnp.float32(0.0), jnp.float32(0.0))  # no pulls


def softmax(scores: np.ndarray) -> np.ndarray:
    """In float64."""
    raised = np.exp(np.asarray(scores, np.float64) - np.max(scores, axis=-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def fresh(scores: jax.Array, actions: jax.Array, gain: jax.Array, **changes: object) -> Fresh:
    """What the losses read, for actors with these scores; the value is 0, and every round weighs by its chance."""
    log_actions, going = stops.split_choice(scores)
    taken = jnp.take_along_axis(log_actions, actions[..., None], axis=-1)[..., 0]
    soft = soft_stops(going)
    deciding = soft.reached[..., None] * going[..., ::-1]  # of two agents
    weights = soft.played, soft.reached, deciding.at[:, -1].set(0.0)
    made = Fresh(actions, None, gain, gain, gain, *weights, taken, going, None)  # type: ignore[arg-type]
    return made._replace(**changes)


def action_loss(scores: jax.Array, data: Fresh, weights: Weights = FREE) -> jax.Array:
    return ppo.action_loss_of(CONFIG, scores, data, weights)


def stop_loss(scores: jax.Array, data: Fresh, weights: Weights = FREE) -> jax.Array:
    return ppo.stop_loss_of(CONFIG, scores, data, weights)


action_gradient = jax.jit(jax.grad(action_loss))
stop_gradient = jax.jit(jax.grad(stop_loss))
SCORES = jnp.asarray(np.random.default_rng(0).normal(size=(1, ROUNDS, AGENTS, ARMS + 1)), jnp.float32)
TAKEN = jnp.array([[[0, 1], [1, 1], [1, 0]]])
GAIN = jnp.array([[0.7, -0.4, 0.0]])


def test_a_choice_is_split_into_going_on_and_what_to_do_then():
    """Going on has even odds where STOP scores as much as the best action: there a greedy agent is undecided."""
    log_actions, going = stops.split_choice(SCORES)
    np.testing.assert_allclose(np.exp(log_actions), softmax(SCORES[..., :-1]), atol=1e-6)
    best = np.max(SCORES[..., :-1], axis=-1)
    np.testing.assert_allclose(going, 1 / (1 + np.exp(SCORES[..., -1] - best)), atol=1e-6)
    np.testing.assert_array_equal(going > 0.5, np.argmax(SCORES, axis=-1) != STOP)


def test_the_action_gradient_is_the_policy_gradient():
    """-mean(∇ log π(a | goes on) · advantage) with the chance that a round is played; STOP has no part in it."""
    data = fresh(SCORES, TAKEN, GAIN)
    found = action_gradient(SCORES, data)
    chances, played = softmax(SCORES[..., :-1]), np.asarray(data.acting, np.float64)
    expected = np.zeros(SCORES.shape)
    for t, agent in itertools.product(range(ROUNDS), range(AGENTS)):
        score = np.eye(ARMS)[int(TAKEN[0, t, agent])] - chances[0, t, agent]
        expected[0, t, agent, :ARMS] = -score * float(GAIN[0, t]) * played[0, t] / played.sum() / AGENTS
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_stop_gradient_is_that_of_the_expected_return():
    """Scores of STOP move the chances of all rounds; the gain is what going on pays, later stops averaged over."""
    rewards = jnp.array([[0.5, -0.3, 0.0]])

    def expected_return(scores: jax.Array) -> jax.Array:
        return jnp.sum(soft_stops(stops.split_choice(scores)[1]).played * rewards)

    together = soft_stops(stops.split_choice(SCORES)[1]).together
    data = fresh(SCORES, TAKEN, soft_returns(rewards, jnp.zeros_like(rewards), together, 1.0))
    found = -stop_gradient(SCORES, data) * jnp.sum(data.acting) * AGENTS
    true = jax.grad(expected_return)(SCORES)
    np.testing.assert_allclose(found[..., -1], true[..., -1], atol=1e-6)
    np.testing.assert_array_equal(found[..., :-1], 0.0)  # what to sample is not moved by when to stop


def test_at_a_temperature_the_best_stop_is_a_soft_function_of_what_going_on_is_worth():
    """The log-odds of going on are those without eyes plus worth over temperature, whatever the round weighs."""
    odds, temperature = 1.5, 0.25
    weights = Weights(jnp.float32(0.0), jnp.float32(temperature), jnp.float32(odds))
    scores = jnp.zeros((1, ROUNDS, AGENTS, ARMS + 1)).at[..., -1].set(-(odds + GAIN / temperature)[..., None])
    data = fresh(scores, TAKEN, GAIN)
    np.testing.assert_allclose(jax.jit(jax.grad(stop_loss))(scores, data, weights), 0.0, atol=1e-6)
    moved = scores.at[..., -1].add(0.3)
    assert np.abs(jax.jit(jax.grad(stop_loss))(moved, data, weights)[:, :-1, :, -1]).min() > 1e-4


def test_the_divergence_is_that_of_two_coins():
    lead, odds = np.array([-1.0, 0.3, 2.0]), 0.7
    going, prior = 1 / (1 + np.exp(-lead)), 1 / (1 + np.exp(-odds))
    true = going * np.log(going / prior) + (1 - going) * np.log((1 - going) / (1 - prior))
    found = np.asarray(stops.stop_divergence(jnp.asarray(lead, jnp.float32), jnp.float32(odds)))
    np.testing.assert_allclose(found - found[0], true - true[0], atol=1e-6)


class TestClip:
    """Once a probability has moved by more than the clip in the direction that pays, nothing pulls it further."""

    taken = jnp.zeros((1, 2, AGENTS), jnp.int32)
    scores = jnp.zeros((1, 2, AGENTS, ARMS + 1))
    cases = pytest.mark.parametrize(
        ("moved", "gain", "cut"), [(0.25, 1.0, True), (0.15, 1.0, False), (0.25, -1.0, False), (-0.25, -1.0, True)]
    )

    @cases
    def test_of_actions(self, moved, gain, cut):
        data = fresh(self.scores, self.taken, jnp.full((1, 2), gain))
        data = data._replace(log_actions=data.log_actions - np.float32(np.log1p(moved)))  # the ratio is 1 + moved
        slope = np.abs(action_gradient(self.scores, data)).max()
        assert slope == 0.0 if cut else slope > 0.01

    @cases
    def test_of_stopping(self, moved, gain, cut):
        data = fresh(self.scores, self.taken, jnp.full((1, 2), gain))
        slope = np.abs(stop_gradient(self.scores, data._replace(going=data.going - moved))).max()
        assert slope == 0.0 if cut else slope > 0.01


# -- what is learned from: returns of episodes

PROBLEM = Bandit(arms=2, players=2, horizon=4)
BASE: Learner = drawn(
    lambda: ppo.init(PROBLEM, override(CONFIG, {"network.hidden_size": 4}), adam(1.0), key=jax.random.key(0)), scale=1.0
)
VALUE, COST = 0.4, 0.05


def constant_value(learner: Learner) -> Learner:
    value = eqx.tree_at(lambda v: v.output.weight, learner.value, replace_fn=jnp.zeros_like)
    return learner._replace(value=eqx.tree_at(lambda v: v.output.bias, value, jnp.full((1,), VALUE)))


LEARNER = constant_value(BASE)


def episodes(payoff: list[float] | None = None) -> Episode:
    """Two episodes to the horizon, in which both players are paid in one round and neither in the others."""
    actions = jnp.tile(jnp.array([[0, 0], [1, 1], [0, 1], [STOP, STOP]], jnp.int8)[None], (2, 1, 1))
    readings = jnp.zeros_like(actions).at[0, 1].set(1).at[1, 2].set(1)
    paid = None if payoff is None else jnp.tile(jnp.array(payoff)[None], (2, 1))
    truth = jnp.array([[1, 0], [1, 0]], jnp.int8)
    nothing = jnp.zeros((2, 4), bool)
    return Episode(actions, readings, nothing, jnp.array([3, 3]), truth, jnp.zeros(2, bool), paid)


@partial(jax.jit, static_argnames="posterior")
def prepared(settings: PPO, episode: Episode, iteration: jax.Array, posterior: str = "exact") -> Fresh:
    config = dataclasses.replace(CONFIG, algorithm=settings, iterations=90, posterior=posterior)
    seen = jax.vmap(lambda e: histories(PROBLEM, e))(episode)
    log_actions, going = stops.split_choice(joint_scores(config, LEARNER.actors, seen))
    judged = judge_exactly(PROBLEM, episode)
    turn = Turn(episode, None, jnp.float32(COST), iteration, jnp.float32(2.0))  # type: ignore[arg-type]
    chances = log_actions, going, soft_stops(going)
    return ppo.prepare(PROBLEM, config, LEARNER, episode, seen, judged, chances, turn)


LAST = jnp.int32(90)


def test_returns_with_the_problems_own_payoffs_by_hand():
    """Rounds pay 0.05, 0.15 and 0.25 (the price is off), the value is 0.4, λ = 1/2; c is the chance that nobody stops.

    G_2 = 0.25; G_1 = 0.15 + c_2 (0.4 + 0.25)/2; G_0 = 0.05 + c_1 (0.4 + G_1)/2.
    """
    data = prepared(PPO(gae_lambda=0.5), episodes([0.1, 0.2, 0.3, 0.0]), LAST)
    together = np.prod(np.asarray(data.going, np.float64), axis=-1)
    third = np.full(2, 0.25)
    second = 0.15 + together[:, 2] * (0.4 + third) / 2
    first = 0.05 + together[:, 1] * (0.4 + second) / 2
    np.testing.assert_allclose(data.returns[:, :3], np.stack([first, second, third], axis=1), atol=1e-5)
    played = np.cumprod(together[:, :3], axis=1)
    spread = np.sqrt(np.sum(played * (np.asarray(data.returns)[:, :3] - VALUE) ** 2) / played.sum())
    np.testing.assert_allclose(data.advantage[:, :3], (np.asarray(data.returns)[:, :3] - VALUE) / spread, rtol=1e-3)


def test_rounds_weigh_as_much_as_they_are_likely_and_the_last_has_no_choice():
    data = prepared(PPO(min_round_weight=0.3, min_stop_prob=0.2), episodes(), LAST)
    going = np.asarray(data.going, np.float64)
    together = np.prod(going, axis=-1)
    reached = np.concatenate([np.ones((2, 1)), np.cumprod(together[:, :2], axis=1)], axis=1)
    np.testing.assert_allclose(data.valuing[:, :3], np.maximum(reached, 0.3), atol=1e-5)
    np.testing.assert_allclose(data.acting[:, :3], np.maximum(reached * together[:, :3], 0.3), atol=1e-5)
    deciding = np.maximum(reached[..., None] * going[:, :3, ::-1], 0.2)
    np.testing.assert_allclose(data.deciding[:, :3], deciding, atol=1e-5)
    for last in (data.valuing[:, 3], data.acting[:, 3], data.deciding[:, 3]):
        np.testing.assert_array_equal(last, 0.0)


def test_the_potential_goes_from_the_probability_of_the_truth_to_confidence():
    """By two thirds of training, linearly. With exact Bayes: after a round that paid both players on arm 0, its
    capacity is 2 for sure; arm 1 is as likely 1 as 2."""
    judged = once(lambda: judge_exactly(PROBLEM, episodes()))
    np.testing.assert_allclose(judged.confidence[0, :2], [0.25, 0.5], atol=1e-5)
    np.testing.assert_allclose(np.exp(judged.log_truth[0, :2]), [0.25, 0.5], atol=1e-5)
    truth = np.exp(np.asarray(judged.log_truth, np.float64))
    for progress, share in ((0.0, 1.0), (1 / 3, 0.5), (2 / 3, 0.0), (1.0, 0.0)):
        found = stops.potential_of(CONFIG, judged, jnp.float32(progress))
        np.testing.assert_allclose(found, (1 - share) * judged.confidence + share * truth, atol=1e-5)
    assert np.abs(truth - judged.confidence).max() > 0.01


def test_the_signal_of_exact_bayes_is_the_hand_worked_one():
    """Both players on arm 1 unpaid: p(C=1) ∝ 1, p(C=2) ∝ ∫ (1-μ)² over [0.3, 1] = 0.7²/3, so P(C=1) = 1/(1 + 0.49/3).

    With λ = 1 the return of going on from round 0 is what is gained by the end, minus the price, if nobody stops.
    """
    judged = once(lambda: judge_exactly(PROBLEM, episodes()))
    alone = 1 / (1 + 0.49 / 3)
    np.testing.assert_allclose(judged.confidence[0, 2], alone, atol=1e-5)  # arm 0 is sure
    np.testing.assert_allclose(np.exp(judged.log_truth[0, 2]), alone, atol=1e-5)
    data = prepared(PPO(gae_lambda=1.0), episodes(), LAST)
    together = np.prod(np.asarray(data.going, np.float64), axis=-1)[0]
    gains = np.diff(np.asarray(judged.confidence, np.float64)[0]) - COST
    expected = gains[0] + together[1] * (gains[1] + together[2] * gains[2])
    assert float(data.returns[0, 0]) == pytest.approx(expected, abs=1e-5)


def test_networks_and_exact_bayes_are_judged_alike():
    """The same account of confidence, truth and correctness; here of a network that knows nothing."""
    seen = once(lambda: jax.vmap(lambda e: histories(PROBLEM, e))(episodes()))
    judged = once(lambda: judge(PROBLEM, LEARNER.inference, seen.team, episodes()))
    scores = np.asarray(once(lambda: jax.vmap(LEARNER.inference.unroll)(seen.team)))
    chances = softmax(scores)  # batch, rounds, arms, capacities
    np.testing.assert_allclose(judged.confidence, chances.max(-1).prod(-1), atol=1e-5)
    truth = chances[..., 0, 1] * chances[..., 1, 0]  # capacities 2 and 1
    np.testing.assert_allclose(np.exp(judged.log_truth), truth, atol=1e-5)
    right = (chances[..., 0, :].argmax(-1) == 1) & (chances[..., 1, :].argmax(-1) == 0)
    np.testing.assert_array_equal(judged.correct, right)


def test_measured_are_means_over_who_stops_when():
    episode = episodes()
    config = dataclasses.replace(CONFIG, posterior="network")

    def found() -> tuple:
        seen = jax.vmap(lambda e: histories(PROBLEM, e))(episode)
        going = stops.split_choice(joint_scores(config, LEARNER.actors, seen))[1]
        judged = judge(PROBLEM, LEARNER.slow_inference, seen.team, episode)
        soft = soft_stops(going)
        return stops.measured(PROBLEM, config, LEARNER.slow_inference, episode, seen, judged, soft), judged, soft

    measured, judged, soft = once(found)
    chances = np.asarray(soft.stops, np.float64)
    assert float(measured["tau"]) == pytest.approx(np.mean(chances @ np.arange(1, 5)), abs=1e-5)
    assert float(measured["accuracy"]) == pytest.approx(
        np.mean(np.sum(chances * np.asarray(judged.correct), axis=1)), abs=1e-5
    )
    assert float(measured["confidence"]) == pytest.approx(
        np.mean(np.sum(chances * np.asarray(judged.confidence), axis=1)), abs=1e-5
    )
    assert float(measured["forced"]) == pytest.approx(np.mean(np.asarray(soft.reached)[:, -1]), abs=1e-5)


@pytest.mark.parametrize("name", ["ppo", "td3"])
def test_softness_falls_to_nothing_and_with_it_temperature_and_chance(name):
    changes = {"stop_anneal_fraction": 0.5, "stop_kl_coef": 0.4, "ent_coef": 0.04, "ent_coef_final": 0.01}
    own = {f"algorithm.{setting}": value for setting, value in changes.items()}
    config = override(with_algorithm(Config(), name), {"iterations": 100, **own})

    def turn(iteration: int, length: float = 6.0) -> Turn:
        return Turn(None, None, jnp.float32(0.0), jnp.int32(iteration), jnp.float32(length))  # type: ignore[arg-type]

    def weights(iteration: int) -> Weights:
        return stops.weights_at(PROBLEM, config, turn(iteration))

    temperatures = [float(weights(i).temperature) for i in (0, 25, 50, 90)]
    np.testing.assert_allclose(temperatures, [0.4, 0.2, 0.0, 0.0], atol=1e-6)
    entropies = [float(weights(i).entropy) for i in (0, 50, 100)]
    np.testing.assert_allclose(entropies, [0.04, 0.02, 0.01], atol=1e-6)
    # three times in six rounds at first; never more often than every other round
    chances = [float(stops.chance_ends(config, turn(*when))) for when in ((0,), (25,), (50,), (90,), (0, 2.0))]
    np.testing.assert_allclose(chances, [0.5, 0.25, 0.0, 0.0, 0.5], atol=1e-6)
    # two agents that stop once in twelve rounds each: the team about once in six
    assert float(weights(0).odds) == pytest.approx(np.log(11), abs=1e-5)


def test_a_threshold_leaves_the_agents_no_stop_to_learn():
    """Their STOP is out of reach: its score has no gradient, and each goes on for sure. After one round the team is
    sure of 0.5 in the first episode and of 0.43 in the second, which goes on for another round to 0.45."""
    config = override(CONFIG, {"stopping": "threshold", "posterior": "exact", "delta": 0.55})
    episode = episodes()

    def gradient() -> tuple[Fresh, jax.Array]:
        seen = jax.vmap(lambda e: histories(PROBLEM, e))(episode)
        log_actions, going = stops.split_choice(joint_scores(config, LEARNER.actors, seen))
        turn = Turn(episode, None, jnp.float32(COST), jnp.int32(0), jnp.float32(2.0))  # type: ignore[arg-type]
        judged = judge_exactly(PROBLEM, episode)
        chances = log_actions, going, stops.stops_of(config, going, judged.confidence)
        data = ppo.prepare(PROBLEM, config, LEARNER, episode, seen, judged, chances, turn)
        weights = Weights(jnp.float32(0.01), jnp.float32(0.1), jnp.float32(1.0))
        return data, jax.grad(lambda actors: ppo.actor_loss_of(config, actors, data, weights))(LEARNER.actors)

    data, slope = once(gradient)
    np.testing.assert_array_equal(data.going[:, :-1], 1.0)
    least = CONFIG.algorithm.min_round_weight
    np.testing.assert_allclose(data.acting, [[1.0, least, least, 0.0], [1.0, 1.0, least, 0.0]], atol=1e-6)
    assert float(slope.actor.head.bias[-1]) == 0.0
    assert np.abs(slope.actor.head.bias[:-1]).max() > 1e-4
