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
from icmape.learning.config import PPO, Config, override
from icmape.learning.inference import posterior_potential
from icmape.learning.off_policy import Turn
from icmape.learning.optimize import adam
from icmape.learning.ppo import Fresh, Learner, Weights
from icmape.learning.rollout import Episode, histories
from icmape.problems import Bandit
from tests.support import drawn, once

CLIP = 0.2
AGENTS, ARMS, STOP = 2, 2, 2


def with_settings(settings: PPO) -> Config:
    return dataclasses.replace(Config(), algorithm=settings)


CONFIG = with_settings(PPO(clip=CLIP))


def softmax(scores: np.ndarray) -> np.ndarray:
    """In float64."""
    raised = np.exp(np.asarray(scores, np.float64) - np.max(scores, axis=-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def fresh(scores: jax.Array, actions: jax.Array, went_on: jax.Array, gain: jax.Array, **changes: object) -> Fresh:
    """What the losses read, for actors with these scores: one episode, its value 0 and every STOP obeyed."""
    log_actions, going = ppo.split_choice(scores)
    taken = jnp.take_along_axis(log_actions, jnp.minimum(actions, ARMS - 1)[..., None], axis=-1)[..., 0]
    together = jnp.prod(going, axis=-1)
    made = Fresh(actions, None, went_on, went_on, gain, gain, gain, together, taken, going, None)  # type: ignore[arg-type]
    return made._replace(**changes)


def everyone(went_on: jax.Array) -> jax.Array:
    return jnp.broadcast_to(went_on[..., None], (*went_on.shape, AGENTS))


def action_loss(scores: jax.Array, data: Fresh) -> jax.Array:
    return ppo.action_loss_of(CONFIG, ppo.split_choice(scores)[0], data, everyone(data.went_on))


def stop_loss(scores: jax.Array, data: Fresh) -> jax.Array:
    return ppo.stop_loss_of(CONFIG, ppo.split_choice(scores)[1], data, everyone(data.went_on))


action_gradient = jax.jit(jax.grad(action_loss))
stop_gradient = jax.jit(jax.grad(stop_loss))

ROUNDS = 3
SCORES = jnp.asarray(np.random.default_rng(0).normal(size=(1, ROUNDS, AGENTS, ARMS + 1)), jnp.float32)
TAKEN = jnp.array([[[0, 1], [1, 1], [STOP, 0]]])
WENT_ON = jnp.array([[True, True, False]])
GAIN = jnp.array([[0.7, -0.4, 5.0]])


def test_a_choice_is_split_into_going_on_and_what_to_do_then():
    scores = SCORES.at[0, 1, 0, 0].set(-1e9)  # one that is not allowed
    log_actions, going = ppo.split_choice(scores)
    chances = softmax(scores)
    np.testing.assert_allclose(going, 1 - chances[..., -1], atol=1e-6)
    np.testing.assert_allclose(np.exp(log_actions) * going[..., None], chances[..., :-1], atol=1e-6)


def test_at_the_old_actors_the_action_gradient_is_the_policy_gradient():
    """-mean(∇ log π(a | goes on) · advantage) over the rounds that went on; STOP's score has no part in it."""
    found = action_gradient(SCORES, fresh(SCORES, TAKEN, WENT_ON, GAIN))
    given_on = softmax(SCORES[..., :-1])
    expected = np.zeros(SCORES.shape)
    for t, agent in itertools.product(range(2), range(AGENTS)):
        score = np.eye(ARMS)[int(TAKEN[0, t, agent])] - given_on[0, t, agent]
        expected[0, t, agent, :ARMS] = -score * float(GAIN[0, t]) / (2 * AGENTS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_at_the_old_actors_the_stop_gradient_is_that_of_everyone_going_on():
    """∇ of Π_j (1 - π_j(STOP)) times the gain, over the chance of having gone on.

    A softmax's 1 - π(STOP) has gradient π(STOP)·π(a) at action a, and -π(STOP)·(1 - π(STOP)) at STOP.
    """
    odds = jnp.full((1, ROUNDS), 0.8)
    found = stop_gradient(SCORES, fresh(SCORES, TAKEN, WENT_ON, GAIN, odds=odds))
    chances = softmax(SCORES)
    assert (1 - chances[..., -1]).min() > PPO.least_say
    expected = np.zeros(SCORES.shape)
    for t, agent in itertools.product(range(2), range(AGENTS)):
        mine, others = chances[0, t, agent], 1 - chances[0, t, 1 - agent, -1]
        slope = np.append(mine[:-1], -(1 - mine[-1])) * mine[-1]
        expected[0, t, agent] = -others / 0.8 * float(GAIN[0, t]) * slope / (2 * AGENTS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_an_agent_has_a_say_even_where_the_others_stop_for_sure():
    """Otherwise a team whose members all stop could never unlearn it: the weight is at least `least_say`."""
    sure = jnp.zeros((1, 1, AGENTS, ARMS + 1)).at[..., -1].set(20.0)
    data = fresh(sure, TAKEN[:, :1], jnp.array([[True]]), jnp.array([[1.0]]), odds=jnp.full((1, 1), 0.5))
    slope = jax.jit(jax.grad(lambda going: ppo.stop_loss_of(CONFIG, going, data, everyone(data.went_on))))(data.going)
    np.testing.assert_allclose(slope, -PPO.least_say / 0.5 / AGENTS, rtol=1e-4)


def test_what_lies_behind_a_sure_stop_does_not_spoil_the_gradient():
    """Where the episode had ended the chance of going on may be too small for a float."""
    scores = SCORES.at[0, 2, :, -1].set(200.0)
    data = fresh(scores, TAKEN, WENT_ON, GAIN, odds=jnp.array([[0.8, 0.8, 0.0]]))
    assert np.all(np.isfinite(stop_gradient(scores, data)))


class TestOneDecision:
    """Two agents, one round: each draws STOP or one of two arms. All outcomes are enumerated.

    Going on with arms (a, b) is worth WORTH[a, b] more than stopping; a STOP that is overruled counts as a stop.
    """

    worth = np.array([[0.9, -0.3], [0.2, 0.4]])
    scores = SCORES[:, :1]

    def expected_return(self, scores: jax.Array) -> jax.Array:
        """Π(1 - π_i(STOP)) · Σ π(a) π(b) WORTH[a, b], written out."""
        chances = jax.nn.softmax(scores[0, 0])
        return chances[0, :-1] @ jnp.asarray(self.worth, jnp.float32) @ chances[1, :-1]

    def outcomes(self, keep_stop: float) -> list[tuple[float, tuple[int, int], bool]]:
        """Probability, actions and whether the round went on."""
        first = softmax(self.scores)[0, 0]
        given_on = softmax(self.scores[..., :-1])[0, 0]
        found = []
        for drawn_ in itertools.product(range(ARMS + 1), repeat=2):
            chance = first[0, drawn_[0]] * first[1, drawn_[1]]
            if STOP not in drawn_:
                found.append((chance, drawn_, True))
                continue
            found.append((chance * keep_stop, drawn_, False))
            for instead in itertools.product(range(ARMS), repeat=2):
                redrawn = given_on[0, instead[0]] * given_on[1, instead[1]]
                found.append((chance * (1 - keep_stop) * redrawn, instead, True))
        return found

    def estimates(self, keep_stop: float) -> tuple[np.ndarray, np.ndarray]:
        """The expectation of both gradients over what is drawn, for the sum over agents instead of their mean."""
        chances, actions, went_on = (np.array(column) for column in zip(*self.outcomes(keep_stop), strict=True))
        assert chances.sum() == pytest.approx(1.0)
        gain = np.where(went_on, self.worth[np.minimum(actions[:, 0], 1), np.minimum(actions[:, 1], 1)], 99.0)
        together = float(np.prod(1 - softmax(self.scores)[0, 0, :, -1]))
        odds = together + (1 - together) * (1 - keep_stop)
        assert chances[went_on].sum() == pytest.approx(odds)

        def one(taken: jax.Array, on: jax.Array, gained: jax.Array) -> tuple[jax.Array, jax.Array]:
            data = fresh(self.scores, taken[None, None], on[None, None], gained[None, None])
            data = data._replace(odds=jnp.full((1, 1), odds), advantage=data.gain - 0.3)  # any baseline
            return jax.grad(action_loss)(self.scores, data), jax.grad(stop_loss)(self.scores, data)

        rows = jnp.asarray(actions, jnp.int32), jnp.asarray(went_on), jnp.asarray(gain, jnp.float32)
        found = jax.jit(jax.vmap(one))(*rows)
        return tuple(-AGENTS * np.einsum("n,n...->...", chances, np.asarray(each)) for each in found)  # type: ignore[return-value]

    @pytest.mark.parametrize("keep_stop", [1.0, 0.5])
    def test_the_expected_estimate_is_the_gradient_of_the_expected_return(self, keep_stop):
        """With overruled STOPs a round is seen more often than it is reached, so what to do there weighs more."""
        on_action, on_stop = self.estimates(keep_stop)
        together = float(np.prod(1 - softmax(self.scores)[0, 0, :, -1]))
        seen_more = (together + (1 - together) * (1 - keep_stop)) / together
        true = np.asarray(jax.grad(self.expected_return)(self.scores))
        np.testing.assert_allclose(on_stop + on_action / seen_more, true, atol=1e-6)
        assert np.abs(on_stop).max() > 1e-2
        assert np.abs(on_action).max() > 1e-2


class TestClip:
    """Once a probability has moved by more than the clip in the direction that pays, nothing pulls it further."""

    went_on = jnp.array([[True]])
    taken = jnp.zeros((1, 1, AGENTS), jnp.int32)
    scores = jnp.zeros((1, 1, AGENTS, ARMS + 1))

    @pytest.mark.parametrize(
        ("moved", "gain", "cut"), [(0.25, 1.0, True), (0.15, 1.0, False), (0.25, -1.0, False), (-0.25, -1.0, True)]
    )
    def test_of_actions(self, moved, gain, cut):
        data = fresh(self.scores, self.taken, self.went_on, jnp.full((1, 1), gain))
        data = data._replace(log_actions=data.log_actions - np.float32(np.log1p(moved)))  # the ratio is 1 + moved
        slope = np.abs(action_gradient(self.scores, data)).max()
        assert slope == 0.0 if cut else slope > 0.01

    @pytest.mark.parametrize(
        ("moved", "gain", "cut"), [(0.25, 1.0, True), (0.15, 1.0, False), (0.25, -1.0, False), (-0.25, -1.0, True)]
    )
    def test_of_stopping(self, moved, gain, cut):
        data = fresh(self.scores, self.taken, self.went_on, jnp.full((1, 1), gain))
        slope = np.abs(stop_gradient(self.scores, data._replace(going=data.going - moved))).max()
        assert slope == 0.0 if cut else slope > 0.01


# -- what is learned from: returns of episodes

PROBLEM = Bandit(arms=2, players=2, horizon=4)
BASE: Learner = drawn(
    lambda: ppo.init(PROBLEM, override(Config(), {"network.width": 4}), adam(1.0), key=jax.random.key(0)), scale=1.0
)
VALUE = 0.4


def constant_value(learner: Learner) -> Learner:
    value = eqx.tree_at(lambda v: v.output.weight, learner.value, replace_fn=jnp.zeros_like)
    return learner._replace(value=eqx.tree_at(lambda v: v.output.bias, value, jnp.full((1,), VALUE)))


LEARNER = constant_value(BASE)


def episodes(payoff: list[float] | None) -> Episode:
    """Two episodes that went on to the horizon; in the second a STOP was overruled in round 1."""
    actions = jnp.tile(jnp.array([[0, 0], [1, 1], [0, 1], [STOP, STOP]], jnp.int8)[None], (2, 1, 1))
    explored = jnp.array([[False] * 4, [False, True, False, False]])
    paid = None if payoff is None else jnp.tile(jnp.array(payoff)[None], (2, 1))
    truth = jnp.array([[1, 0], [1, 0]], jnp.int8)
    return Episode(actions, jnp.zeros_like(actions), explored, jnp.array([3, 3]), truth, jnp.zeros(2, bool), paid)


COST = 0.05


def turn_of(episode: Episode) -> Turn:
    """An iteration without a replay: PPO prepares fresh episodes only."""
    return Turn(episode, None, jnp.float32(COST), jnp.int32(0))  # type: ignore[arg-type]


@partial(jax.jit, static_argnums=0)
def prepared(settings: PPO, episode: Episode, progress: jax.Array) -> Fresh:
    return ppo.prepare(PROBLEM, with_settings(settings), LEARNER, episode, turn_of(episode), progress)


def unscaled(data: Fresh) -> np.ndarray:
    """The gains as they were before they were divided by their spread: the value is 0.4 everywhere."""
    return np.asarray(data.gain * (VALUE / (data.gain - data.advantage)[0, 0]))


HALF = PPO(trace=0.5, keep_stop=0.25)
PAID = [0.1, 0.2, 0.3, 0.0]


def test_an_overruled_stop_ends_the_return_as_if_it_had_been_obeyed():
    """Rounds pay 0.05, 0.15 and 0.25 (the price is off), the value is 0.4, λ = 1/2, the horizon's STOP is worth 0.

    What rounds 3, 2 and 1 lead to: 0; (0.4 + 0.25)/2 = 0.325; (0.4 + 0.15 + 0.325)/2 = 0.4375, but (0.4 + 0)/2 = 0.2
    where its STOP was overruled. There the gain is still that of going on, and the value learns that it is a stop.
    """
    data = prepared(HALF, episodes(PAID), jnp.float32(1.0))
    gain = [[0.05 + 0.4375, 0.15 + 0.325, 0.25], [0.05 + 0.2, 0.15 + 0.325, 0.25]]
    np.testing.assert_allclose(unscaled(data)[:, :3], gain, atol=1e-5)
    returns = [[*gain[0], 0.0], [gain[1][0], 0.0, 0.25, 0.0]]
    np.testing.assert_allclose(data.returns, returns, atol=1e-5)
    spread = np.sqrt(np.mean((np.array(gain) - VALUE) ** 2))
    np.testing.assert_allclose(data.advantage[:, :3], (np.array(gain) - VALUE) / spread, atol=1e-4)
    np.testing.assert_array_equal(data.went_on, [[True, True, True, False]] * 2)
    np.testing.assert_array_equal(data.decided, [[True, True, True, False]] * 2)


def test_prepared_probabilities_are_those_of_the_actors_that_played():
    """So the first gradient step is at ratio 1, where the clipped loss is minus the mean advantage."""
    data = prepared(HALF, episodes(PAID), jnp.float32(1.0))
    scores = np.asarray(once(lambda: jax.vmap(LEARNER.actors.unroll)(data.seen.local))).swapaxes(1, 2)
    chances = softmax(scores)
    together = np.prod(1 - chances[..., -1], axis=-1)
    np.testing.assert_allclose(data.going, 1 - chances[..., -1], atol=1e-5)
    np.testing.assert_allclose(data.odds, together + (1 - together) * 0.75, atol=1e-5)
    given_on = np.take_along_axis(chances, np.minimum(data.actions, 1)[..., None], -1)[..., 0] / (1 - chances[..., -1])
    np.testing.assert_allclose(np.exp(data.log_actions), given_on, atol=1e-5)
    loss = jax.jit(lambda d: action_loss(jnp.asarray(scores), d))(data)
    assert float(loss) == pytest.approx(-np.mean(np.asarray(data.advantage)[:, :3]), abs=1e-5)


def test_the_truth_has_a_share_in_the_potential_that_is_gone_by_two_thirds():
    """Returns are linear in it: 0.15 of log p(H*) at the start, half of that after a third, none from two thirds on."""
    settings = PPO(trace=1.0, truth_share=0.15)
    episode = episodes(None)
    shares = {0.0: 0.15, 1 / 3: 0.075, 2 / 3: 0.0, 1.0: 0.0}
    found = {at: unscaled(prepared(settings, episode, jnp.float32(at)))[0, :3] for at in shares}

    def potentials() -> tuple[jax.Array, jax.Array]:
        seen = jax.vmap(lambda e: histories(PROBLEM, e))(episode)
        return posterior_potential(PROBLEM, LEARNER.slow_inference, seen.team, episode)

    confidence, truth = (np.asarray(each)[0] for each in once(potentials))
    for at, share in shares.items():
        potential = (1 - share) * confidence + share * truth
        expected = [potential[3] - potential[t] - COST * (3 - t) for t in range(3)]
        np.testing.assert_allclose(found[at], expected, atol=1e-4)
    assert np.abs(found[0.0] - found[1.0]).max() > 1e-2


def test_a_threshold_leaves_the_agents_no_stop_to_learn():
    """Their STOP is out of reach: its score has no gradient, and each goes on for sure."""
    config = override(with_settings(HALF), {"stopping": "threshold"})
    weights = Weights(jnp.float32(0.01), jnp.float32(0.5))

    def gradient() -> tuple[Fresh, jax.Array]:
        fresh = episodes(PAID)
        data = ppo.prepare(PROBLEM, config, LEARNER, fresh, turn_of(fresh), jnp.float32(0.0))
        return data, jax.grad(lambda actors: ppo.actor_loss_of(config, actors, data, weights))(LEARNER.actors)

    data, slope = once(gradient)
    np.testing.assert_array_equal(data.going, 1.0)
    np.testing.assert_array_equal(data.odds, 1.0)
    assert float(slope.actor.head.bias[-1]) == 0.0
    assert np.abs(slope.actor.head.bias[:-1]).max() > 1e-4
