"""Value decomposition, independent learners and DQN: the same formula with and without a sum over agents."""

import dataclasses
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning import value
from icmape.learning.config import Config, Value, with_algorithm
from icmape.learning.mixing import MIXINGS, Mixing
from icmape.learning.off_policy import Replayed
from icmape.learning.optimize import adam
from icmape.learning.value import Learner
from icmape.networks import Actors
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from tests.learning.replayed import PROBLEM, batch, constant_outputs
from tests.support import drawn, once

COST = 0.1
FREE = [0.0] * 4  # values are relative to stopping, so STOP pays nothing
SUM, NONE, QMIX = (Value(mixing=mixing, gae_lambda=0.5) for mixing in ("sum", "none", "qmix"))


def with_settings(settings: Value) -> Config:
    return dataclasses.replace(with_algorithm(Config(), "vdn"), algorithm=settings)


def learner(problem: Bandit = PROBLEM, shared: bool = True) -> Learner:
    config = override(with_algorithm(Config(), "vdn"), {"network.hidden_size": 4, "network.share_weights": shared})
    return drawn(lambda: value.init(problem, config, adam(1.0), key=jax.random.key(0)), scale=1.0)


SHARED, OWN = learner(), learner(shared=False)


@partial(jax.jit, static_argnums=0)
def targets(settings: Value, base: Learner, data: Replayed) -> jax.Array:
    return value.value_targets(PROBLEM, with_settings(settings), mixed_by(settings, base), data, jnp.float32(COST))


def mixed_by(settings: Value, base: Learner) -> Learner:
    """The same learner with the mixing of these settings."""
    mixing = mixing_of(settings)
    return base._replace(mixing=mixing, target_mixing=mixing)


def mixing_of(settings: Value) -> Mixing:
    return MIXINGS[settings.mixing](PROBLEM, with_settings(settings), key=jax.random.key(0))


@partial(jax.jit, static_argnums=0)
def loss_and_gradient(settings: Value, values: Actors, data: Replayed, target: jax.Array) -> tuple[jax.Array, Actors]:
    return jax.value_and_grad(
        lambda v: value.value_loss_of(with_settings(settings), v, mixing_of(settings), data, target)
    )(values)


def with_values(base: Learner, online: list, slow: list) -> Learner:
    """A learner that knows one value per arm (and agent, where weights are own), now and in its slow copy."""
    return base._replace(
        actors=constant_outputs(base.actors, online), target_actors=constant_outputs(base.target_actors, slow)
    )


class TestTargets:
    """λ = 1/2, the rewards 0.1, 0.2, 0.3, and a stop at the horizon that is worth 0."""

    double = with_values(SHARED, [0.3, 0.1], [0.2, 0.9])  # arm 0 is the online choice, whose slow value is 0.2

    def test_a_hand_worked_target_of_the_sum(self):
        """Both agents' 0.2 make 0.4.

        G_2 = 0.3; G_1 = 0.2 + (0.4 + 0.3)/2 = 0.55; G_0 = 0.1 + (0.4 + 0.55)/2 = 0.575
        """
        found = targets(SUM, self.double, batch(stopping=FREE))
        np.testing.assert_allclose(found[0], np.array([[0.575], [0.55], [0.3], [0.0]]), atol=1e-6)

    def test_a_hand_worked_target_of_each_agent(self):
        """G_2 = 0.3; G_1 = 0.2 + (0.2 + 0.3)/2 = 0.45; G_0 = 0.1 + (0.2 + 0.45)/2 = 0.425"""
        found = targets(NONE, self.double, batch(stopping=FREE))
        np.testing.assert_allclose(found[0], np.array([[0.425, 0.45, 0.3, 0.0]] * 2).T, atol=1e-6)

    @pytest.mark.parametrize("settings", [SUM, NONE, QMIX], ids=["sum", "none", "qmix"])
    def test_anybodys_stop_is_worth_nothing_to_all(self, settings):
        """Agent 1 expects less than 0 of both arms, so it would stop. Every round was explored: no traces."""
        base = with_values(OWN, [[0.3, 0.1], [-0.1, -0.2]], [[0.5, 0.5], [0.5, 0.5]])
        found = targets(settings, base, batch(explored=(True,) * 4, stopping=FREE))
        np.testing.assert_allclose(found[0, :3], np.broadcast_to([[0.1], [0.2], [0.3]], found[0, :3].shape), atol=1e-6)

    def test_values_stay_inside_what_can_be_reached(self):
        """At confidence 0.8 no policy gains more than 0.2, nor loses more than 0.8 and the price of two rounds."""
        data = batch(explored=(True,) * 4, stopping=FREE)._replace(confidence=jnp.full((1, 4), 0.8))
        for slow, leads_to in ((99.0, 0.2), (-99.0, -0.8 - 2 * COST)):
            found = targets(SUM, with_values(SHARED, [0.3, 0.1], [slow, slow]), data)
            assert float(found[0, 0, 0]) == pytest.approx(0.1 + leads_to, abs=1e-6)

    def test_the_threshold_ends_an_episode_where_it_is_sure_whatever_agents_prefer(self):
        data = batch(explored=(True,) * 4, stopping=FREE)._replace(confidence=jnp.array([[0.5, 0.95, 0.5, 0.5]]))
        config = override(with_settings(SUM), {"stopping": "threshold"})
        base = with_values(SHARED, [-0.1, -0.2], [0.2, 0.2])  # STOP would be best, but it is not theirs
        found = once(lambda: value.value_targets(PROBLEM, config, base, data, jnp.float32(COST)))
        np.testing.assert_allclose(found[0, :3, 0], [0.1, 0.2 + 0.4, 0.3], atol=1e-6)


class TestLoss:
    """Arm 0 for both, arm 1 for both, one on each; agent 0 expects 0.5 and 0.2 of the arms, agent 1 0.1 and 0.4."""

    values = constant_outputs(OWN.actors, [[0.5, 0.2], [0.1, 0.4]])
    rows = np.array([0.3, -0.1, 0.7, 7.0])

    def target(self, columns: int) -> jax.Array:
        return jnp.asarray(np.broadcast_to(self.rows[None, :, None], (1, 4, columns)), jnp.float32)

    def test_the_sum_is_off_by_what_all_expect_together(self):
        loss, _ = loss_and_gradient(SUM, self.values, batch(), self.target(1))
        expected = ((0.5 + 0.1 - 0.3) ** 2 + (0.2 + 0.4 + 0.1) ** 2 + (0.5 + 0.4 - 0.7) ** 2) / 3
        assert float(loss) == pytest.approx(expected, abs=1e-6)

    def test_who_carries_the_sum_is_told_by_the_balance(self):
        """Twice an agent's value is what the team would be worth if the other's were the same."""
        loss, _ = loss_and_gradient(SUM, self.values, batch(), self.target(1))
        pulled, _ = loss_and_gradient(dataclasses.replace(SUM, balance_coef=0.5), self.values, batch(), self.target(1))
        uneven = [1.0 - 0.3, 0.2 - 0.3, 0.4 + 0.1, 0.8 + 0.1, 1.0 - 0.7, 0.8 - 0.7]
        assert float(pulled - loss) == pytest.approx(0.5 * np.mean(np.square(uneven)), abs=1e-6)

    def test_without_the_sum_there_is_nothing_to_balance(self):
        one, other = (
            loss_and_gradient(s, self.values, batch(), self.target(2))
            for s in (NONE, dataclasses.replace(NONE, balance_coef=0.5))
        )
        assert eqx.tree_equal(one, other)

    def test_without_the_sum_each_agent_is_off_by_itself(self):
        loss, _ = loss_and_gradient(NONE, self.values, batch(), self.target(2))
        errors = [0.5 - 0.3, 0.2 + 0.1, 0.5 - 0.7, 0.1 - 0.3, 0.4 + 0.1, 0.4 - 0.7]
        assert float(loss) == pytest.approx(np.mean(np.square(errors)), abs=1e-6)

    @pytest.mark.parametrize("settings", [SUM, NONE, QMIX], ids=["sum", "none", "qmix"])
    def test_the_stop_round_teaches_nothing(self, settings):
        """Stopped in round 2: whatever the targets are from there on."""
        target = self.target(2 if settings is NONE else 1)
        one = loss_and_gradient(settings, OWN.actors, batch(stop=2), target)
        other = loss_and_gradient(settings, OWN.actors, batch(stop=2), target.at[:, 2:].set(-50.0))
        assert eqx.tree_equal(one, other)
        assert max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(one[1])) > 1e-3  # it does learn

    @pytest.mark.parametrize("settings", [SUM, NONE], ids=["sum", "none"])
    def test_whose_values_move_mine(self, settings):
        """Agent 1 changes its mind. Agent 0's gradient feels it only where the sum is learned."""
        target = self.target(1 if settings is SUM else 2)
        changed = eqx.tree_at(lambda v: v.actor.head.bias, OWN.actors, OWN.actors.actor.head.bias.at[1].add(0.7))
        grads = [loss_and_gradient(settings, v, batch(), target)[1].actor.head for v in (OWN.actors, changed)]
        mine = [np.concatenate([np.ravel(head.weight[0]), head.bias[0]]) for head in grads]
        if settings is SUM:
            assert np.abs(mine[0] - mine[1]).max() > 1e-2
        else:
            np.testing.assert_array_equal(*mine)
        assert np.any(grads[0].bias[1] != grads[1].bias[1])


def test_with_one_agent_all_are_the_same_dqn():
    """Targets, loss and gradients of the sum over one agent are that agent's."""
    alone = Bandit(arms=2, players=1, horizon=4)
    base, data = learner(alone), batch(stopping=FREE, problem=alone)

    def results() -> list[tuple]:
        found = []
        for settings in (SUM, NONE):
            target = value.value_targets(
                alone, with_settings(settings), mixed_by(settings, base), data, jnp.float32(COST)
            )
            found.append((target, *loss_and_gradient(settings, base.actors, data, target)))
        return found

    vdn, dqn = once(results)
    assert eqx.tree_equal(vdn, dqn)
    assert vdn[0].shape == (1, 4, 1)
    assert float(vdn[1]) > 0


def test_stop_is_worth_exactly_nothing_and_has_no_weights():
    scores = once(lambda: jax.vmap(SHARED.actors.unroll)(batch().seen.local))
    np.testing.assert_array_equal(scores[..., :-1, -1], 0.0)
    assert np.all(scores[..., -1, -1] > 1e6)  # in the last round it is all there is
    assert np.all(scores[..., :-1] != 0.0)
    assert SHARED.actors.actor.head.bias.shape == (PROBLEM.actions,)


@pytest.mark.parametrize(("mixing", "start"), [("sum", 0.3 / 2), ("qmix", 0.3 / 2), ("none", 0.3)])
def test_every_team_starts_with_the_same_hope(mixing, start):
    """The team's value of going on starts above STOP's 0: split between the agents where it is their sum."""
    config = override(with_settings(Value(mixing=mixing, optimistic_init=0.3)), {"network.hidden_size": 4})
    biases = once(lambda: value.init(PROBLEM, config, adam(1.0), key=jax.random.key(0)).actors.actor.head.bias)
    np.testing.assert_allclose(biases, start, rtol=1e-6)
