"""TD3's targets, losses and gradients on cases small enough to work out by hand."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from icmape.learning import soft_stops as stops
from icmape.learning import td3, train
from icmape.learning.config import Config, with_algorithm
from icmape.learning.inference_loss import judge, judge_exactly
from icmape.learning.off_policy import Step, Turn
from icmape.learning.scores import joint_scores
from icmape.learning.soft_stops import Weights
from icmape.learning.td3 import Batch, Learner
from icmape.networks import Actors, Critic
from icmape.play.policy import LearnedPolicy
from icmape.play.rollout import Drawn, Episode, histories
from icmape.settings import override
from tests.learning.replayed import PROBLEM, STOP, constant_outputs
from tests.support import QUICK_TO_COMPILE, drawn, once

COST, ROUNDS, LAST = 0.05, 4, 3
CONFIG = override(
    with_algorithm(Config(), "td3"),
    {"network.hidden_size": 4, "network.share_weights": False, "posterior": "exact", "iterations": 90},
)
WEIGHTS = Weights(jnp.float32(0.02), jnp.float32(0.25), jnp.float32(1.5))
FREE = Weights(jnp.float32(0.0), jnp.float32(0.0), jnp.float32(0.0))  # no pulls


def keep_gradients() -> optax.GradientTransformation:
    """An optimizer that goes nowhere and remembers the gradient."""
    zeros = partial(jax.tree.map, jnp.zeros_like)
    return optax.GradientTransformation(zeros, lambda gradient, state, parameters=None: (zeros(gradient), gradient))


LEARNER: Learner = drawn(lambda: td3.init(PROBLEM, CONFIG, keep_gradients(), key=jax.random.key(0)), scale=1.0)


def episodes() -> Episode:
    """Two episodes to the horizon; in the first both players are paid on arm 0, and then neither is on arm 1."""
    plans = [[[0, 0], [1, 1], [0, 1], [STOP, STOP]], [[1, 0], [0, 1], [1, 1], [STOP, STOP]]]
    actions = jnp.array(plans, jnp.int8)
    readings = jnp.zeros_like(actions).at[0, 1].set(1).at[1, 2].set(1)
    truth = jnp.array([[1, 0], [1, 0]], jnp.int8)
    return Episode(actions, readings, jnp.zeros((2, 4), bool), jnp.array([3, 3]), truth, jnp.zeros(2, bool))


TAKEN = np.array([[[0, 0], [1, 1], [0, 1], [1, 1]], [[1, 0], [0, 1], [1, 1], [1, 1]]])  # STOP's stand-in in the last
SEEN = once(lambda: jax.vmap(partial(histories, PROBLEM))(episodes()))


def constant_critic(critic: Critic, values: list[float]) -> Critic:
    """A critic that knows one value per action, whatever it sees."""
    quiet = eqx.tree_at(lambda c: c.output.weight, critic, replace_fn=jnp.zeros_like)
    return eqx.tree_at(lambda c: c.output.bias, quiet, jnp.array(values))


def constant_critics(values: list[list[float]]) -> tuple[Critic, Critic]:
    first, second = (constant_critic(c, v) for c, v in zip(LEARNER.critics, values, strict=True))
    return first, second


def with_targets(values: list[list[float]]) -> Learner:
    """Target critics with these values. Agent 0 takes arm 0 with chance 3/4 and goes on with 4/5, agent 1 with 1/2 and
    9/10."""
    outputs = [[np.log(3), 0, -np.log(4)], [0, 0, -np.log(9)]]
    actors = constant_outputs(LEARNER.target_actors, outputs)
    return LEARNER._replace(target_critics=constant_critics(values), target_actors=actors)


@jax.jit
def prepare(config: Config, learner: Learner, episode: Episode, ends: float) -> Batch:
    """At the end of training, when confidence alone is paid."""
    step = Step(keep_gradients(), jnp.float32(COST), jnp.int32(1), jnp.float32(1.0), jnp.float32(1.0), None)
    return td3.prepare(PROBLEM, config, learner, episode, SEEN, step, jnp.float32(ends))


def prepared(learner: Learner, trace: float) -> Batch:
    """With rewards from the confidence of exact Bayes."""
    return prepare(override(CONFIG, {"algorithm.gae_lambda": trace}), learner, episodes(), 0.0)


def paid(learner: Learner, trace: float, ends: float = 0.0, episode: Episode | None = None, **settings: Any) -> Batch:
    """With the problem's own rewards: 0.05, 0.15 and 0.25, the price taken off."""
    config = override(CONFIG, {"reward": "environment", "algorithm.gae_lambda": trace, **settings})
    return prepare(config, learner, (episode or episodes())._replace(payoff=PAYOFF), ends)


TWINS = [[0.5, 0.2], [0.4, 0.9]]  # the smaller values are 0.4 and 0.2
PAYOFF = jnp.tile(jnp.array([0.1, 0.2, 0.3, 0.0]), (2, 1))


class TestTargets:
    def test_a_hand_worked_target(self):
        """Rounds pay 0.05, 0.15 and 0.25 (the price is off), λ = 1/2, and chance ends a quarter of the rounds.

        Going on is worth 3/4 · 0.4 + 1/4 · 0.2 = 0.35 to agent 0 and (0.4 + 0.2)/2 = 0.3 to agent 1. Nobody stops with
        chance c = 3/4 · 4/5 · 9/10 = 0.54, for sure in the last round.
        G_2 = 0.25 for both; G_1 = 0.15 + c (0.35 + 0.25)/2 = 0.312 and 0.15 + c (0.3 + 0.25)/2 = 0.2985;
        G_0 = 0.05 + c (0.35 + 0.312)/2 = 0.22874 and 0.05 + c (0.3 + 0.2985)/2 = 0.211595.
        """
        batch = paid(with_targets(TWINS), 0.5, ends=0.25)
        np.testing.assert_allclose(batch.gain[0, :3], [[0.22874, 0.211595], [0.312, 0.2985], [0.25, 0.25]], atol=1e-6)
        np.testing.assert_array_equal(batch.gain[0], batch.gain[1])

    def test_without_traces_a_target_is_one_reward_and_the_next_value(self):
        """c = 0.72 without chance: 0.05 + c · 0.35, 0.15 + c · 0.35, 0.25."""
        batch = paid(with_targets(TWINS), 0.0)
        np.testing.assert_allclose(batch.gain[0, :3, 0], [0.302, 0.402, 0.25], atol=1e-6)

    def test_with_full_traces_no_value_is_looked_at(self):
        """0.15 + c · 0.25 = 0.33, 0.05 + c · 0.33 = 0.2876; whatever critics say."""
        for values in (TWINS, [[7.0, -7.0], [9.0, 3.0]]):
            batch = paid(with_targets(values), 1.0)
            np.testing.assert_allclose(batch.gain[0, :3, 1], [0.2876, 0.33, 0.25], atol=1e-6)

    def test_values_look_at_what_the_others_really_did(self):
        """Agent 0 took the other arm in round 1: that moves agent 1's target of round 0, and no target of its own."""
        other = episodes()._replace(actions=episodes().actions.at[0, 1, 0].set(0))
        before, after = (paid(LEARNER, 0.0, episode=e).gain[0, 0] for e in (episodes(), other))
        assert float(before[0]) == float(after[0])
        assert abs(float(before[1] - after[1])) > 1e-3

    def test_rounds_weigh_as_much_as_they_are_likely_to_be_reached(self):
        """c = 0.54: 1, 0.54 and 0.54² = 0.2916, which is less than 0.4; in the last round there is no choice.

        The unit of values is the root of the mean squared difference between target and value, weighted like that.
        """
        batch = paid(with_targets(TWINS), 0.5, ends=0.25, **{"algorithm.min_round_weight": 0.4})
        weights = np.array([1.0, 0.54, 0.4])
        np.testing.assert_allclose(batch.valuing, np.tile([*weights, 0.0], (2, 1)), atol=1e-6)
        gain = np.array([[0.22874, 0.211595], [0.312, 0.2985], [0.25, 0.25]])
        squares = np.mean((gain - np.array([0.35, 0.3])) ** 2, axis=1)
        assert float(batch.scale) == pytest.approx(np.sqrt(weights @ squares / weights.sum()), abs=1e-5)

    @pytest.mark.parametrize(("critic", "reach"), [(99.0, 1.0), (-99.0, 0.0)])
    def test_values_stay_inside_what_can_be_reached(self, critic, reach):
        """From confidence r a team gains at most 1-r, and loses at most r and the price of all rounds left.

        r is 1/4, 1/2 and 1/(1 + 0.49/3) (arm 0 is sure, see test_ppo), c = 0.72, λ = 0.
        """
        r = np.array([0.25, 0.5, 1 / (1 + 0.49 / 3)])
        value = reach - r - (0.0 if reach else COST * np.array([3, 2, 1]))
        expected = np.diff(r) - COST + 0.72 * value[1:]
        batch = prepared(with_targets([[critic] * 2] * 2), 0.0)
        np.testing.assert_allclose(batch.gain[0, :2], np.stack([expected] * 2, axis=1), atol=1e-5)

    def test_payoffs_have_no_bounds(self):
        batch = paid(with_targets([[99.0] * 2] * 2), 0.0)
        np.testing.assert_allclose(batch.gain[0, :2, 0], [0.05 + 0.72 * 99, 0.15 + 0.72 * 99], rtol=1e-6)

    def test_a_threshold_ends_episodes_where_confidence_reaches_it(self, monkeypatch):
        """With a network that knows Bayes' rule r is 1/4, 1/2 and 0.86 in the first episode. At 1-δ = 0.8 round 2 is
        the end: it is worth nothing to go on to it, and all to go on to round 1, whatever the agents would do.
        """
        monkeypatch.setattr(stops, "judge", lambda problem, network, team, episode: judge_exactly(problem, episode))
        for delta, second in ((0.2, 0.15), (0.1, 0.15 + 0.35)):  # at 0.9 the episode goes on
            batch = paid(with_targets(TWINS), 0.0, stopping="threshold", delta=delta)
            np.testing.assert_allclose(batch.gain[0, :2, 0], [0.05 + 0.35, second], atol=1e-6)
            np.testing.assert_allclose(batch.valuing[0], [1.0, 1.0, 1.0, 0.0], atol=1e-6)


def test_reach_by_hand():
    """r = 0.8 and ζ = 0.1, with three, two, one and no rounds left; and what lies inside stays."""
    potential, cost = jnp.full((1, 4), 0.8), jnp.float32(0.1)
    for value, expected in ((99.0, [0.2] * 4), (-99.0, [-1.1, -1.0, -0.9, -0.8]), (0.1, [0.1] * 4)):
        found = td3.within_reach(jnp.full((1, 4, 1), value), potential, jnp.float32(0.0), cost)
        np.testing.assert_allclose(found[0, :, 0], expected, atol=1e-6)
    below = td3.within_reach(jnp.full((1, 4, 1), -99.0), potential, jnp.float32(-3.0), cost)
    np.testing.assert_allclose(below[0, :, 0], [-4.1, -4.0, -3.9, -3.8], atol=1e-6)


def test_nothing_is_learned_from_what_lies_behind_a_stop():
    """λ = 1/2, all go on for sure, values 0.4. The second episode was left in round 1: there the value stands for what
    is unknown, so G_0 = 0.1 + 0.4 whatever stands behind it; the first one was played on."""
    rewards = jnp.array([[0.1, 0.2, 0.3, 0.0], [0.1, 9.0, 9.0, 0.0]])
    stop, together = jnp.array([3, 1]), jnp.array([[1.0, 1.0, 1.0, 0.0]] * 2)
    episode = episodes()._replace(stop=stop)
    played = td3.rounds_played(episode)
    np.testing.assert_array_equal(played, [[1, 1, 1, 0], [1, 0, 0, 0]])
    gain = td3.returns_of(rewards, jnp.full((2, 4, 1), 0.4), together, played, 0.5)
    np.testing.assert_allclose(gain[0, :, 0], [0.1 + 0.2 + 0.275, 0.2 + 0.2 + 0.15, 0.3, 0.0], atol=1e-6)
    assert float(gain[1, 0, 0]) == pytest.approx(0.5, abs=1e-6)


def test_critics_learn_at_the_actions_taken():
    """The targets are 0; agents take arm 0 and 0, 1 and 1, 0 and 1 in the first episode, 1 and 0, 0 and 1, 1 and 1 in
    the second. An arm costs 0.5² + 0.4² = 0.41 or 0.2² + 0.9² = 0.85 in the two critics together, with the mean over
    agents; rounds weigh 1, 0.5 and 0.25.
    """
    weights = jnp.tile(jnp.array([1.0, 0.5, 0.25, 0.0]), (2, 1))
    batch = _batch()._replace(gain=jnp.zeros((2, 4, 2)), valuing=weights)
    found = jax.jit(td3.critic_loss_of)(constant_critics(TWINS), batch)
    first = 1.0 * 0.41 + 0.5 * 0.85 + 0.25 * 0.63
    second = 1.0 * 0.63 + 0.5 * 0.63 + 0.25 * 0.85
    assert float(found) == pytest.approx((first + second) / 3.5, abs=1e-6)


def test_no_value_is_learned_of_an_action_that_was_not_taken():
    """In the first round of both episodes agent 1 took arm 0: what a critic says of arm 1 there has no gradient."""
    weights = jnp.tile(jnp.array([1.0, 0.0, 0.0, 0.0]), (2, 1))
    batch = _batch()._replace(valuing=weights, actions=jnp.zeros((2, 4, 2), jnp.int32))
    slope = jax.jit(jax.grad(td3.critic_loss_of))(LEARNER.critics, batch)
    for critic in slope:
        assert np.abs(critic.output.bias[0]) > 1e-4
        assert float(critic.output.bias[1]) == 0.0


def _batch() -> Batch:
    actions = jnp.asarray(TAKEN, jnp.int32)
    gain, scale = jnp.asarray(np.random.default_rng(0).normal(size=(2, 4, 2)), jnp.float32), jnp.float32(0.5)
    confidence, valuing = jnp.full((2, 4), 0.3), jnp.ones((2, 4))
    played = td3.rounds_played(episodes())
    return Batch(SEEN, actions, jax.nn.one_hot(actions, 2), confidence, gain, scale, valuing, played, None)


# -- the actors


def softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


@jax.jit
def score(learner: Learner) -> tuple:
    """Scores of the actors, and the critics' values beside the actions that were taken."""
    joint = jax.nn.one_hot(jnp.asarray(TAKEN), 2)
    values = [jax.vmap(jax.vmap(c.values))(jax.vmap(c.summaries)(SEEN.team), joint) for c in learner.critics]
    return joint_scores(CONFIG, learner.actors, SEEN), *values


def loss_by_hand(
    worth: np.ndarray, scores: np.ndarray, scale: float, ends: float, behind: float, least: float
) -> float:
    """Minus what each agent expects of its own actions in a round that is played, with entropy; and what going on is
    worth to it where its stop decides, minus the divergence from the stop without eyes."""
    entropy_weight, temperature, odds = map(float, WEIGHTS)
    total = stops = weight = 0.0
    for episode in range(2):
        reached = 1.0
        for t in range(LAST):
            actions, stop = scores[episode, t, :, :2], scores[episode, t, :, 2]
            chances, going = softmax(actions), 1 / (1 + np.exp(stop - actions.max(-1)))
            gain = np.sum(chances * worth[episode, t], axis=-1) / scale
            entropy = -np.sum(chances * np.log(chances), axis=-1)
            together = (1 - ends) * np.prod(going)
            acting = max(reached * together, behind)
            total += acting * np.mean(gain + entropy_weight * entropy)
            weight += acting
            for agent in (0, 1):
                say, g = max(reached * going[1 - agent], least), going[agent]
                divergence = (1 - g) * odds + g * np.log(g) + (1 - g) * np.log(1 - g)
                stops += say * (g * gain[agent] - temperature * divergence)
            reached *= together
    return -total / weight - stops / (2 * weight)


@partial(jax.jit, compiler_options=QUICK_TO_COMPILE)
def step_of(config: Config, learner: Learner, number: jax.Array) -> tuple:
    """A gradient step that goes nowhere, and what the losses read."""
    step = Step(keep_gradients(), jnp.float32(COST), number, jnp.float32(1.0), jnp.float32(1.0), None)
    batch = td3.prepare(PROBLEM, config, learner, episodes(), SEEN, step, jnp.float32(0.25))
    return td3.update(PROBLEM, config, learner, episodes(), step, WEIGHTS, jnp.float32(0.25)), batch


STEPPED = override(
    CONFIG, {"algorithm.min_round_weight": 0.2, "algorithm.min_stop_prob": 0.3, "algorithm.target_update_rate": 0.25}
)


def test_the_actors_loss_by_hand():
    """With all four networks as they were drawn: own actions in expectation, those of the others as really taken."""
    (_, losses), batch = step_of(STEPPED, LEARNER, jnp.int32(1))
    scores, worth, _ = (np.asarray(x, np.float64) for x in score(LEARNER))
    expected = loss_by_hand(worth, scores, float(batch.scale), ends=0.25, behind=0.2, least=0.3)
    assert float(losses["actor_loss"]) == pytest.approx(expected, rel=1e-4)
    assert np.unique(np.argmax(scores[:, :LAST], axis=-1)).size > 1


def test_the_smaller_critic_can_be_climbed_instead():
    """Action by action."""
    (_, losses), batch = step_of(override(STEPPED, {"algorithm.actor_value": "min"}), LEARNER, jnp.int32(1))
    scores, first, second = (np.asarray(x, np.float64) for x in score(LEARNER))
    assert 0 < np.mean(first < second) < 1
    expected = loss_by_hand(np.minimum(first, second), scores, float(batch.scale), 0.25, 0.2, 0.3)
    assert float(losses["actor_loss"]) == pytest.approx(expected, rel=1e-4)


def test_actors_and_targets_have_every_second_turn():
    """Otherwise only critics and inference learn."""
    faster = LEARNER._replace(critics=jax.tree.map(lambda x: x + 1.0, LEARNER.target_critics))
    for number, moved in ((0, 0.0), (1, 0.25)):
        (after, losses), _ = step_of(STEPPED, faster, jnp.int32(number))
        for target, old in zip(*map(jax.tree.leaves, (after.target_critics, faster.target_critics)), strict=True):
            np.testing.assert_allclose(target - old, moved, atol=1e-6)
        for name, learns in (("actor", bool(number)), ("critic", True), ("inference", True)):
            same = eqx.tree_equal(getattr(after, f"{name}_moments"), getattr(faster, f"{name}_moments"))
            assert same != learns, name
            assert (float(losses[f"{name}_loss"]) != 0) == learns, name


@jax.jit
def bias_gradient(
    critics: tuple[Critic, Critic], batch: Batch, weights: Weights, base: Actors = LEARNER.actors
) -> jax.Array:
    """Gradient on every agent's own output biases (agents, choices): enough to see who is moved by what."""
    worth = td3.values_of(critics[:1], batch.seen, batch.joint)

    def loss(bias: jax.Array) -> jax.Array:
        actors = eqx.tree_at(lambda a: a.actor.head.bias, base, bias)
        return td3.actor_loss_of(CONFIG, actors, worth, batch, weights, jnp.float32(0.0))

    return jax.grad(loss)(base.actor.head.bias)


def nudge(critic: Critic, agent: int) -> Critic:
    """Change what the critic thinks of one agent's actions, and of nobody else's: its identity's column."""
    column = critic.hidden.weight.shape[1] - PROBLEM.agents + agent
    return eqx.tree_at(lambda c: c.hidden.weight, critic, critic.hidden.weight.at[:, column].add(0.7))


class TestWhatMovesAnActor:
    def change(self, **after: Any) -> np.ndarray:
        """Largest change in the gradient of each agent's biases."""
        args = {"critics": LEARNER.critics, "batch": _batch(), "weights": WEIGHTS}
        before = bias_gradient(**args)
        assert np.abs(before).max(axis=1).min() > 1e-4  # both learn
        return np.abs(bias_gradient(**(args | after)) - before).max(axis=1)

    @pytest.mark.parametrize("agent", [0, 1])
    def test_its_own_values_alone(self, agent):
        first, second = LEARNER.critics
        change = self.change(critics=(nudge(first, agent), second))
        assert change[agent] > 1e-4
        assert change[1 - agent] == 0.0

    def test_the_second_critic_does_not(self):
        assert np.all(self.change(critics=(LEARNER.critics[0], nudge(LEARNER.critics[1], 0))) == 0.0)

    @pytest.mark.parametrize("agent", [0, 1])
    def test_what_the_other_really_did(self, agent):
        """One agent took the other arm in a round: its fellow's values are others, its own are not."""
        batch = _batch()
        other = batch._replace(joint=batch.joint.at[0, 1, agent].set(batch.joint[0, 1, agent, ::-1]))
        change = self.change(batch=other)
        assert change[1 - agent] > 1e-4
        assert change[agent] == 0.0

    def test_what_to_sample_is_moved_by_what_it_is_worth_alone(self):
        """Agent 0 expects 3/4 · 0.5 + 1/4 · 0.2 = 0.425, agent 1 expects 0.35, in units of 0.5. The mean over rounds
        and over two agents of π(a) (Q(a) - what it expects) is 0.05625 and 0.075, whatever rounds and stops weigh.
        """
        actors = with_targets(TWINS).target_actors
        found = bias_gradient(constant_critics(TWINS), _batch(), FREE, actors)
        np.testing.assert_allclose(found[:, :2], [[-0.05625, 0.05625], [-0.075, 0.075]], atol=1e-6)

    def test_when_to_stop_does_not_move_what_to_sample(self):
        """All actions are worth the same: scores of actions have no gradient, those of STOP go where it is better."""
        for worth in (0.4, -0.4):
            found = bias_gradient(constant_critics([[worth] * 2, [0.0] * 2]), _batch(), FREE)
            np.testing.assert_allclose(found[:, :2], 0.0, atol=1e-7)
            assert np.all(np.sign(worth) * found[:, 2] > 1e-4)  # a step goes against it


# -- episodes


def test_drawn_worlds_draw_actions_and_go_on_past_every_stop():
    """Agents that nearly always stop, and take arm 0 three times of four where they do not.

    Of 1,000 worlds half are greedy: these stop at once. The others play to the last round; the share of arm 0 among
    3,000 actions has a standard error of 0.008, so five of them are a false alarm of 6e-7.
    """
    actors = constant_outputs(LEARNER.actors, [[np.log(3), 0, 5.0]] * 2)
    greedy, keys = jnp.arange(1000) < 500, jax.random.split(jax.random.key(1), 1000)
    play = partial(train.play, PROBLEM, CONFIG, LearnedPolicy(actors), LEARNER.inference, jnp.float32(0.0))
    episode = once(lambda: play(keys, greedy))
    np.testing.assert_array_equal(episode.stop, np.where(greedy, 0, LAST))
    taken = np.asarray(episode.actions)[500:, :LAST]
    assert taken.max() < STOP
    assert np.mean(taken == 0) == pytest.approx(0.75, abs=5 * np.sqrt(0.75 * 0.25 / taken.size))
    noise = td3.noise(CONFIG, jnp.float32(0.5), jnp.array([True, False]))
    assert isinstance(noise, Drawn)
    np.testing.assert_array_equal(noise.keep_stop, [1.0, 0.0])


def test_what_is_measured_is_of_the_drawn_episodes_and_averages_over_who_stops_when():
    """Nobody stops in a round with chance 0.72: the three rounds with a choice, and the last one, by hand. The first
    two of four episodes are greedy and say nothing."""
    config = override(CONFIG, {"num_envs": 4, "greedy_fraction": 0.5, "posterior": "network"})
    pair = episodes()
    fresh = jax.tree.map(lambda x: jnp.concatenate([x, x]), pair._replace(payoff=jnp.zeros((2, 4))))
    fresh = fresh._replace(actions=fresh.actions.at[:2].set(0), stop=jnp.array([0, 0, 3, 3]))
    actors = with_targets(TWINS).target_actors

    def measure() -> tuple:
        turn = Turn(fresh, None, jnp.float32(0.0), jnp.int32(0), jnp.float32(2.0))  # type: ignore[arg-type]
        judged = judge(PROBLEM, LEARNER.slow_inference, SEEN.team, pair)
        return td3.measure_fresh(PROBLEM, config, LEARNER._replace(actors=actors), turn), judged

    found, judged = once(measure)
    stops = 0.28 * 0.72 ** np.arange(4)
    stops[LAST] = 0.72**3
    assert float(found["tau"]) == pytest.approx(stops @ [1, 2, 3, 4], abs=1e-5)
    assert float(found["forced"]) == pytest.approx(0.72**3, abs=1e-5)
    assert float(found["confidence"]) == pytest.approx(np.mean(np.asarray(judged.confidence) @ stops), abs=1e-5)
    assert float(found["accuracy"]) == pytest.approx(np.mean(np.asarray(judged.correct) @ stops), abs=1e-5)
    coins = -np.array([0.75, 0.25, 0.5, 0.5]) @ np.log([0.75, 0.25, 0.5, 0.5]) / 2
    assert float(found["entropy"]) == pytest.approx(coins, abs=1e-5)


def test_the_actors_loss_is_the_mean_over_the_steps_in_which_they_learn(monkeypatch):
    """Updates 3, 4 and 5 of a run: actors learn in 3 and 5. A mean of 0.4 over all three is one of 0.6 over those."""
    means = {"actor_loss": 0.4, "critic_loss": 0.5, "inference_loss": 0.7, "explored_tau": 4.0}
    told = {name: jnp.float32(value) for name, value in means.items()}
    monkeypatch.setattr(td3, "learn_replayed", lambda *_, **__: (LEARNER, told))
    monkeypatch.setattr(td3, "measure_fresh", lambda *_: {"tau": jnp.float32(2.0)})
    turn = Turn(episodes(), None, jnp.float32(COST), jnp.int32(1), jnp.float32(2.0))  # type: ignore[arg-type]
    _, losses = td3.learn(PROBLEM, override(CONFIG, {"gradient_steps": 3}), LEARNER, turn, key=jax.random.key(1))
    found = {name: pytest.approx(float(value)) for name, value in losses.items()}
    assert found == {"tau": 2.0, "actor_loss": 0.6, "critic_loss": 0.5, "inference_loss": 0.7}


def test_critics_have_no_value_for_stop():
    """It is worth exactly 0, relative to stopping."""
    assert [critic.choices for critic in (*LEARNER.critics, *LEARNER.target_critics)] == [2] * 4
