"""TD3's targets and gradients on cases small enough to work out by hand."""

import dataclasses
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning import td3
from icmape.learning.config import TD3, Config, override, with_algorithm
from icmape.learning.off_policy import Replayed
from icmape.learning.optimize import adam
from icmape.learning.td3 import Learner
from icmape.networks import Actors, Critic
from tests.learning.replayed import ARM_0, PROBLEM, STOP, STOPPING, batch, constant_outputs
from tests.support import drawn


def learner(config: Config) -> Learner:
    return drawn(lambda: td3.init(PROBLEM, config, adam(1.0), key=jax.random.key(0)), scale=1.0)


def with_settings(td3: TD3) -> Config:
    return dataclasses.replace(with_algorithm(Config(), "td3"), algorithm=td3)


OURS = learner(override(with_algorithm(Config(), "td3"), {"network.width": 4}))
OWN_WEIGHTS = learner(override(with_algorithm(Config(), "td3"), {"network.width": 4, "network.shared": False}))
PAPERS = learner(override(with_algorithm(Config(), "td3-paper"), {"network.width": 4}))


def constant_critic(critic: Critic, values: list[float]) -> Critic:
    """A critic that knows one value per choice, whatever it sees."""
    quiet = eqx.tree_at(lambda c: c.output.weight, critic, replace_fn=jnp.zeros_like)
    return eqx.tree_at(lambda c: c.output.bias, quiet, jnp.array(values))


def constant_actors(actors: Actors, *prefer: int) -> Actors:
    """Actors that prefer one choice, whatever they see: the same for all, or one each where weights are their own."""
    return constant_outputs(actors, jax.nn.one_hot(jnp.array(prefer if len(prefer) > 1 else prefer[0]), 3))


def with_targets(base: Learner, critics: list[list[float]], *prefer: int) -> Learner:
    pair = tuple(constant_critic(c, v) for c, v in zip(base.target_critics, critics, strict=True))
    return base._replace(target_critics=pair, target_actors=constant_actors(base.target_actors, *prefer))


COST = 0.1


@partial(jax.jit, static_argnums=0)
def targets(settings: TD3, base: Learner, data: Replayed) -> jnp.ndarray:
    return td3.critic_targets(PROBLEM, with_settings(settings), base, data, jnp.float32(COST))


TWINS = [[0.5, 0.2], [0.4, 0.9]]  # the smaller value of arm 0 is 0.4
STOPS_NEXT = [0.1 + 0.02, 0.2 + 0.03, 0.3 + 0.05, 0.05]  # one more round, then the stop; round 3 is the stop
HALF, PAPER = TD3(trace=0.5), with_algorithm(Config(), "td3-paper").algorithm


class TestTargets:
    def test_a_hand_worked_target(self):
        """λ = 1/2; target actors take arm 0, worth min(0.5, 0.4) = 0.4; the episode was stopped at the horizon.

        Round 3 is the stop: worth 0.05, by its return and by definition.
        G_2 = 0.3 + 0.05 = 0.35
        G_1 = 0.2 + (0.4 + 0.35)/2 = 0.575
        G_0 = 0.1 + (0.4 + 0.575)/2 = 0.5875
        """
        found = targets(HALF, with_targets(OURS, TWINS, ARM_0), batch())
        np.testing.assert_allclose(found[0, :, 0], [0.5875, 0.575, 0.35, 0.05], atol=1e-6)
        np.testing.assert_array_equal(found[0, :, 0], found[0, :, 1])

    def test_a_trace_is_cut_where_an_agent_explored(self):
        """Round 1 was explored: what it led to says nothing, so G_0 = 0.1 + 0.4."""
        found = targets(HALF, with_targets(OURS, TWINS, ARM_0), batch(explored=(False, True, False, False)))
        np.testing.assert_allclose(found[0, :, 0], [0.5, 0.575, 0.35, 0.05], atol=1e-6)

    def test_a_known_stop_is_worth_exactly_its_reward(self):
        """Target actors would stop everywhere, and every round was explored: each leads to the next one's stop."""
        found = targets(HALF, with_targets(OURS, TWINS, STOP), batch(explored=(True,) * 4))
        np.testing.assert_allclose(found[0, :, 0], STOPS_NEXT, atol=1e-6)

    def test_one_agents_stop_is_everyones(self):
        found = targets(HALF, with_targets(OWN_WEIGHTS, TWINS, ARM_0, STOP), batch(explored=(True,) * 4))
        np.testing.assert_allclose(found[0], np.stack([STOPS_NEXT, STOPS_NEXT], axis=1), atol=1e-6)

    def test_a_learned_stop_is_worth_what_the_critics_say(self):
        """Except at the horizon, where stopping is all there is."""
        base = with_targets(PAPERS, [[0.5, 0.2, 0.7], [0.4, 0.9, 0.6]], STOP)
        found = targets(PAPER, base, batch())
        np.testing.assert_allclose(found[0, :, 0], [0.1 + 0.6, 0.2 + 0.6, 0.3 + 0.05, 0.05], atol=1e-6)

    @pytest.mark.parametrize("settings", [HALF, PAPER], ids=["td3", "paper"])
    def test_target_actions_are_hard(self, settings):
        """Only the largest score counts, not by how much."""
        base = PAPERS if settings.stop_value == "learned" else OURS
        sharp = eqx.tree_at(
            lambda it: (
                [getattr(it.target_actors.actor.head, x) for x in ("weight", "bias")]
                + [it.target_actors.actor.schedule]
            ),
            base,
            replace_fn=lambda x: 10.0 * x,
        )
        np.testing.assert_array_equal(targets(settings, sharp, batch()), targets(settings, base, batch()))

    def test_bootstrapped_values_stay_inside_what_can_be_reached(self):
        """From confidence r a policy gains at most 1-r, and loses at most r and the price of all rounds left.

        Stop rewards 0.02 and 0.03 in rounds 1 and 2, r = 0.8, ζ = 0.1, two rounds and one left after them.
        """
        data = batch(explored=(True,) * 4)._replace(confidence=jnp.full((1, 4), 0.8))
        for critic, leads_to in ((99.0, [0.02 + 0.2, 0.03 + 0.2]), (-99.0, [0.02 - 0.8 - 0.2, 0.03 - 0.8 - 0.1])):
            base = with_targets(OURS, [[critic] * 2] * 2, ARM_0)
            found = targets(HALF, base, data)
            np.testing.assert_allclose(found[0, :2, 0], [0.1 + leads_to[0], 0.2 + leads_to[1]], atol=1e-6)


@partial(jax.jit, static_argnums=0)
def critic_loss(settings: TD3, critics: tuple[Critic, Critic], data: Replayed, target: jnp.ndarray) -> jnp.ndarray:
    return td3.critic_loss_of(settings, critics, data, target)


class TestCriticLoss:
    def loss(self, settings: TD3, critics: tuple[Critic, Critic], target: list[float], stop: int) -> float:
        rows = jnp.broadcast_to(jnp.array(target)[None, :, None], (1, 4, 2))
        return float(critic_loss(settings, critics, batch(stop), rows))

    def test_a_known_stop_is_not_learned(self):
        """Stopped in round 2: rounds 0 and 1 count, at the actions taken (arm 0, then arm 1).

        Critic 1 is off by 0.5-0 and 0.2-0, critic 2 by 0.4 and 0.9: (0.25 + 0.16 + 0.04 + 0.81) / 2 rounds.
        """
        critics = tuple(constant_critic(c, v) for c, v in zip(OURS.critics, TWINS, strict=True))
        assert self.loss(HALF, critics, [0.0, 0.0, 7.0, 7.0], stop=2) == pytest.approx(0.63, abs=1e-6)

    def test_a_learned_stop_is(self):
        """Stopped in round 3, off by 0.3 there in each critic and right elsewhere: (0.09 + 0.09) / 4 rounds."""
        critics = tuple(constant_critic(c, [0.5, 0.5, 0.2]) for c in PAPERS.critics)
        assert self.loss(PAPER, critics, [0.5, 0.5, 0.5, 0.5], stop=3) == pytest.approx(0.045, abs=1e-6)


@partial(jax.jit, static_argnums=0)
def actor_loss(settings: TD3, actors: Actors, critics: tuple[Critic, Critic], data: Replayed) -> jnp.ndarray:
    summaries = [jax.vmap(critic.summaries)(data.seen.team) for critic in critics]
    return td3.actor_loss_of(with_settings(settings), actors, critics, summaries, data, key=jax.random.key(5))


@partial(jax.jit, static_argnums=0)
def bias_gradient(settings: TD3, critics: tuple[Critic, Critic], data: Replayed) -> jnp.ndarray:
    """Gradient on every agent's own output biases (agents, choices): enough to see who is moved by what."""

    def loss(bias: jnp.ndarray) -> jnp.ndarray:
        actors = eqx.tree_at(lambda a: a.actor.head.bias, OWN_WEIGHTS.actors, bias)
        return actor_loss(settings, actors, critics, data)

    return jax.grad(loss)(OWN_WEIGHTS.actors.actor.head.bias)


def nudge(critic: Critic, agent: int) -> Critic:
    """Change what the critic thinks of one agent's actions, and of nobody else's: its identity's column."""
    column = critic.hidden.weight.shape[1] - PROBLEM.agents + agent
    return eqx.tree_at(lambda c: c.hidden.weight, critic, critic.hidden.weight.at[:, column].add(0.7))


@pytest.mark.parametrize("joint", [False, True], ids=["own action only", "all agents' actions"])
def test_whose_value_moves_an_actor(joint):
    """Agent 0's value is changed. Agent 1's weights feel it only if gradients pass through all agents' actions."""
    settings = TD3(joint_gradient=joint, logit_penalty=0.0)
    before = bias_gradient(settings, OWN_WEIGHTS.critics, batch())
    after = bias_gradient(settings, tuple(nudge(critic, agent=0) for critic in OWN_WEIGHTS.critics), batch())
    change = np.abs(after - before).max(axis=1)
    assert change[0] > 1e-4
    assert change[1] > 1e-4 if joint else change[1] == 0.0
    assert np.abs(before[1]).max() > 1e-4  # it does learn, from its own value


def test_actors_climb_the_value_of_going_on_if_nobody_stops():
    """Π_{j≠i}(1 - ã_j[STOP]) · Σ_a ã_i[a] q_i(a), and the stop reward for the rest, over rounds with a choice."""
    settings = TD3(logit_penalty=0.01, temperature=0.7)
    critics = tuple(constant_critic(c, v) for c, v in zip(OURS.critics, [[0.5, 0.2], [9.0, 9.0]], strict=True))
    data, key = batch(), jax.random.key(5)
    found = actor_loss(settings, OURS.actors, critics, data)

    scores = np.swapaxes(np.asarray(eqx.filter_jit(OURS.actors.unroll)(_first(data.seen.local))), 0, 1)  # t, i, choice
    gumbel, scores = np.asarray(jax.random.gumbel(key, (1, *scores.shape)))[0, :3], scores[:3]
    noisy = (scores + gumbel) / 0.7
    soft = np.exp(noisy) / np.exp(noisy).sum(-1, keepdims=True)
    plain = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    loss = []
    for t in range(3):  # round 3 is the horizon: no choice
        for i in (0, 1):
            others_go = 1 - plain[t, 1 - i, STOP]
            value = others_go * (soft[t, i, :STOP] @ [0.5, 0.2])
            stops = 1 - others_go * (1 - soft[t, i, STOP])
            loss.append(0.01 * np.sum(scores[t, i] ** 2) - value - stops * STOPPING[t])
    assert float(found) == pytest.approx(np.mean(loss), abs=1e-5)


def _first(tree):
    return jax.tree.map(lambda x: x[0], tree)


def test_the_smaller_critic_can_be_climbed_instead():
    """With "min" a second critic counts where it is smaller. That "q1" does not look at it is seen above."""

    def loss(second: float) -> float:
        critics = (constant_critic(OURS.critics[0], [0.5, 0.5]), constant_critic(OURS.critics[1], [second] * 2))
        return float(actor_loss(TD3(actor_value="min"), OURS.actors, critics, batch()))

    assert loss(9.0) == loss(0.5)
    assert loss(-9.0) > loss(0.5)


def test_greedy_worlds_are_played_without_noise_and_the_rest_with_less_and_less():
    config = with_settings(TD3(noise=0.4, noise_end=0.2, keep_stop=0.5))
    greedy = jnp.array([True, False])
    for progress, rate in ((0.0, 0.4), (0.5, 0.3), (1.0, 0.2)):
        noise = td3.noise(config, jnp.float32(progress), greedy)
        np.testing.assert_allclose(noise.rate, [0.0, rate], atol=1e-6)
        np.testing.assert_allclose(noise.keep_stop, [1.0, 0.5])
        assert noise.on_stop is False


def test_the_paper_s_critics_have_a_value_for_stop_and_ours_do_not():
    assert PAPERS.critics[0].choices == 3
    assert OURS.critics[0].choices == 2
