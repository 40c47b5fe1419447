"""The paper's literal recipe: its targets and gradients on cases small enough to work out by hand."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning import paper_td3, train
from icmape.learning.config import Config, with_algorithm
from icmape.learning.off_policy import Replayed, Step, read_batch
from icmape.learning.optimize import adam
from icmape.learning.paper_td3 import Learner
from icmape.networks import Actors, Critic
from icmape.play.policy import LearnedPolicy
from icmape.play.rollout import Drawn
from icmape.settings import override
from tests.learning.replayed import ARM_0, ARM_1, PROBLEM, STOP, batch, constant_outputs
from tests.support import QUICK_TO_COMPILE, drawn, once

COST = 0.1
CONFIG = override(with_algorithm(Config(), "td3-paper"), {"network.hidden_size": 4})
OWN = override(CONFIG, {"network.share_weights": False})


def learner(config: Config) -> Learner:
    return drawn(lambda: paper_td3.init(PROBLEM, config, adam(1.0), key=jax.random.key(0)), scale=1.0)


LEARNER, OWN_WEIGHTS = learner(CONFIG), learner(OWN)


def constant_critic(critic: Critic, values: list[float]) -> Critic:
    """A critic that knows one value per choice, whatever it sees."""
    quiet = eqx.tree_at(lambda c: c.output.weight, critic, replace_fn=jnp.zeros_like)
    return eqx.tree_at(lambda c: c.output.bias, quiet, jnp.array(values))


def with_targets(base: Learner, critics: list[list[float]], *prefer: int) -> Learner:
    """Target actors prefer one choice, whatever they see: the same for all, or one each where weights are their own."""
    pair = tuple(constant_critic(c, v) for c, v in zip(base.target_critics, critics, strict=True))
    wanted = jax.nn.one_hot(jnp.array(prefer if len(prefer) > 1 else prefer[0]), 3)
    return base._replace(target_critics=pair, target_actors=constant_outputs(base.target_actors, wanted))


@jax.jit
def targets(config: Config, base: Learner, data: Replayed) -> jax.Array:
    return paper_td3.critic_targets(PROBLEM, config, base, data, jnp.float32(COST))


TWINS = [[0.5, 0.2, 0.7], [0.4, 0.9, 0.6]]  # the smaller values are 0.4, 0.2 and, of STOP, 0.6
LAST = [0.3 + 0.05, 0.05]  # round 2 leads to the last one, where stopping (0.05) is all there is


class TestTargets:
    @pytest.mark.parametrize(("prefer", "value"), [(ARM_0, 0.4), (ARM_1, 0.2), (STOP, 0.6)])
    def test_one_reward_and_the_smaller_value_of_what_the_target_actors_take(self, prefer, value):
        """Rounds pay 0.1, 0.2 and 0.3. STOP is worth what the critics say, and not what it pays, but in the last."""
        found = targets(CONFIG, with_targets(LEARNER, TWINS, prefer), batch())
        np.testing.assert_allclose(found[0, :, 0], [0.1 + value, 0.2 + value, *LAST], atol=1e-6)
        np.testing.assert_array_equal(found[0, :, 0], found[0, :, 1])

    def test_each_agent_has_the_value_of_its_own_choice(self):
        """Agent 0 would take arm 0 and agent 1 STOP, which ends the episode for both but is worth to each its own."""
        found = targets(OWN, with_targets(OWN_WEIGHTS, TWINS, ARM_0, STOP), batch())
        np.testing.assert_allclose(found[0, :2], [[0.1 + 0.4, 0.1 + 0.6], [0.2 + 0.4, 0.2 + 0.6]], atol=1e-6)

    def test_what_was_stored_after_the_next_round_is_not_looked_at(self):
        """The episode stopped in round 3, or in round 2: that makes no difference to rounds 0 and 1."""
        base = with_targets(LEARNER, TWINS, ARM_0)
        late, early = (targets(CONFIG, base, batch(stop=stop))[0, :, 0] for stop in (3, 2))
        np.testing.assert_array_equal(late[:2], early[:2])

    def test_target_actions_are_hard(self):
        """Only the largest score counts, not by how much."""
        sharp = eqx.tree_at(
            lambda it: [getattr(it.target_actors.actor.head, x) for x in ("weight", "bias")],
            LEARNER,
            replace_fn=lambda x: 10.0 * x,
        )
        np.testing.assert_array_equal(targets(CONFIG, sharp, batch()), targets(CONFIG, LEARNER, batch()))

    def test_values_have_no_bounds(self):
        found = targets(CONFIG, with_targets(LEARNER, [[99.0] * 3] * 2, ARM_0), batch())
        np.testing.assert_allclose(found[0, :2, 0], [99.1, 99.2], rtol=1e-6)

    def test_a_threshold_s_stop_is_worth_what_it_pays(self):
        """The confidence reaches 1-δ in round 2: nobody's choice, so what stopping pays there (0.03) is known."""
        data = batch()._replace(confidence=jnp.array([[0.5, 0.6, 0.95, 0.7]]))
        config = override(CONFIG, {"stopping": "threshold"})
        found = targets(config, with_targets(LEARNER, TWINS, ARM_0), data)
        np.testing.assert_allclose(found[0, :2, 0], [0.1 + 0.4, 0.2 + 0.03], atol=1e-6)


def test_confidence_is_paid_at_the_stop_only():
    """-ζ a round, and r - (1-δ) where the team stops."""

    def read() -> tuple:
        step = Step(adam(1.0), jnp.float32(COST), jnp.int32(0), jnp.float32(1.0), jnp.float32(0.0), None)
        return read_batch(PROBLEM, CONFIG, LEARNER, batch().episode, step, shaped=False)

    _, data, _ = once(read)
    np.testing.assert_allclose(data.rewards.going_on, -COST, atol=1e-6)
    np.testing.assert_allclose(data.rewards.stopping, data.confidence - 0.9, atol=1e-6)
    assert np.ptp(np.asarray(data.confidence)) > 0.01


def test_the_critics_learn_the_value_of_stop_too():
    """Agents took arms 0 and 0, 1 and 1, 0 and 1, and then stopped; targets are 0.5.

    Both critics know arms 0.5 and 0.1, and STOP 0.2: off by 0, by 0.4, by 0.4 for one of two, and by 0.3.
    """
    critics = tuple(constant_critic(c, [0.5, 0.1, 0.2]) for c in LEARNER.critics)
    loss = jax.jit(paper_td3.critic_loss_of)
    whole = 2 * (0.0 + 0.16 + 0.16 / 2 + 0.09) / 4
    assert float(loss(critics, batch(3), jnp.full((1, 4, 2), 0.5))) == pytest.approx(whole, abs=1e-6)
    earlier = 2 * (0.0 + 0.16) / 2
    assert float(loss(critics, batch(1), jnp.full((1, 4, 2), 0.5))) == pytest.approx(earlier, abs=1e-6)


# -- the actors


@jax.jit
def actor_loss(config: Config, actors: Actors, critics: tuple[Critic, Critic], data: Replayed) -> jax.Array:
    summaries = [jax.vmap(critic.summaries)(data.seen.team) for critic in critics]
    return paper_td3.actor_loss_of(config, actors, critics, summaries, data, key=jax.random.key(5))


@jax.jit
def bias_gradient(critics: tuple[Critic, Critic], data: Replayed) -> jax.Array:
    """Gradient on every agent's own output biases (agents, choices): enough to see who is moved by what."""

    def loss(bias: jax.Array) -> jax.Array:
        actors = eqx.tree_at(lambda a: a.actor.head.bias, OWN_WEIGHTS.actors, bias)
        return actor_loss(OWN, actors, critics, data)

    return jax.grad(loss)(OWN_WEIGHTS.actors.actor.head.bias)


def nudge(critic: Critic, agent: int) -> Critic:
    """Change what the critic thinks of one agent's actions, and of nobody else's: its identity's column."""
    column = critic.hidden.weight.shape[1] - PROBLEM.agents + agent
    return eqx.tree_at(lambda c: c.hidden.weight, critic, critic.hidden.weight.at[:, column].add(0.7))


@pytest.mark.parametrize("agent", [0, 1])
def test_gradients_pass_through_all_agents_actions(agent):
    """One agent's value is changed, and both agents' weights feel it."""
    before = bias_gradient(OWN_WEIGHTS.critics, batch())
    after = bias_gradient(tuple(nudge(critic, agent) for critic in OWN_WEIGHTS.critics), batch())
    assert np.abs(after - before).max(axis=1).min() > 1e-4


def relaxed(temperature: float) -> np.ndarray:
    """The actors' Gumbel-Softmax in the three rounds with a choice, with the noise that the loss draws."""
    views = jax.tree.map(lambda x: x[0], batch().seen.local)
    scores = np.swapaxes(np.asarray(eqx.filter_jit(LEARNER.actors.unroll)(views)), 0, 1)
    noisy = (scores + np.asarray(jax.random.gumbel(jax.random.key(5), (1, *scores.shape)))[0])[:3] / temperature
    raised = np.exp(noisy - noisy.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_actors_climb_the_first_critic_at_their_relaxed_actions(temperature):
    """Mean of Σ ã_i[a] q_i(a) over agents and over rounds in which there was a choice, STOP among the choices."""
    critics = tuple(constant_critic(c, v) for c, v in zip(LEARNER.critics, [[0.5, 0.2, 0.3], [9.0] * 3], strict=True))
    found = actor_loss(
        override(CONFIG, {"algorithm.gumbel_temperature": temperature}), LEARNER.actors, critics, batch()
    )
    assert float(found) == pytest.approx(-np.mean(relaxed(temperature) @ [0.5, 0.2, 0.3]), abs=1e-5)


def test_the_smaller_critic_can_be_climbed_instead():
    critics = tuple(
        constant_critic(c, v) for c, v in zip(LEARNER.critics, [[0.5, 0.2, 0.3], [0.1, 0.9, 0.3]], strict=True)
    )
    found = actor_loss(override(CONFIG, {"algorithm.actor_value": "min"}), LEARNER.actors, critics, batch())
    assert float(found) == pytest.approx(-np.mean(relaxed(1.0) @ [0.1, 0.2, 0.3]), abs=1e-5)


def test_rounds_behind_the_stop_do_not_count():
    """Stopped in round 1: rounds 0 and 1."""
    critics = tuple(constant_critic(c, [0.5, 0.2, 0.3]) for c in LEARNER.critics)
    found = actor_loss(CONFIG, LEARNER.actors, critics, batch(stop=1))
    assert float(found) == pytest.approx(-np.mean(relaxed(1.0)[:2] @ [0.5, 0.2, 0.3]), abs=1e-5)


def test_everyone_can_be_asked_to_stop_where_the_team_stopped():
    """Critics that know nothing, and scores of log 2, 0 and 0: STOP has chance 1/4. Of two rounds one is the stop."""
    critics = tuple(constant_critic(c, [0.0] * 3) for c in LEARNER.critics)
    actors = constant_outputs(LEARNER.actors, [np.log(2), 0.0, 0.0])
    config = override(CONFIG, {"algorithm.stop_consistency_coef": 0.6})
    found = actor_loss(config, actors, critics, batch(stop=1))
    assert float(found) == pytest.approx(0.6 * np.log(4) / 2, abs=1e-5)


@partial(jax.jit, compiler_options=QUICK_TO_COMPILE)
def update(base: Learner, number: jax.Array) -> tuple:
    step = Step(adam(1.0), jnp.float32(COST), number, jnp.float32(1.0), jnp.float32(0.0), None)
    return paper_td3.update(PROBLEM, CONFIG, base, batch().episode, step, key=jax.random.key(3))


def test_actors_and_targets_have_every_second_turn():
    for number, moves in ((0, False), (1, True)):
        base = LEARNER._replace(actor_moments=adam(1.0).init(LEARNER.actors))
        base = base._replace(critic_moments=adam(1.0).init(LEARNER.critics))
        after, _ = update(base._replace(inference_moments=adam(1.0).init(LEARNER.inference)), jnp.int32(number))
        for name in ("actors", "target_actors", "target_critics", "slow_inference"):
            assert eqx.tree_equal(getattr(after, name), getattr(LEARNER, name)) != moves, name
        assert not eqx.tree_equal(after.critics, LEARNER.critics)


# -- episodes


def test_choices_are_drawn_and_stop_is_one_of_them():
    """Scores of log 3, 0 and 0: of 2,000 worlds half are greedy and take arm 0 to the end. In the others each agent
    stops with chance 1/5, so an episode ends in the first round with 1 - 0.8² = 0.36. Five standard errors of 1,000
    worlds: false alarms of 6e-7.
    """
    actors = constant_outputs(LEARNER.actors, [np.log(3), 0.0, 0.0])
    greedy, keys = jnp.arange(2000) < 1000, jax.random.split(jax.random.key(1), 2000)
    play = partial(train.play, PROBLEM, CONFIG, LearnedPolicy(actors), LEARNER.inference, jnp.float32(0.0))
    episode = once(lambda: play(keys, greedy))
    np.testing.assert_array_equal(episode.stop[:1000], 3)
    np.testing.assert_array_equal(episode.actions[:1000, :3], ARM_0)
    assert np.mean(np.asarray(episode.stop)[1000:] == 0) == pytest.approx(0.36, abs=5 * np.sqrt(0.36 * 0.64 / 1000))
    first = np.asarray(episode.actions)[1000:, 0]
    for choice, chance in ((ARM_0, 0.6), (ARM_1, 0.2), (STOP, 0.2)):
        assert np.mean(first == choice) == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / 2000))
    assert not np.any(episode.explored)  # no STOP is overruled


def test_some_of_its_stops_can_be_overruled():
    noise = paper_td3.noise(
        override(CONFIG, {"algorithm.stop_obey_prob": 0.25}), jnp.float32(0.5), jnp.array([True, False])
    )
    assert isinstance(noise, Drawn)
    np.testing.assert_array_equal(noise.keep_stop, [1.0, 0.25])


def test_critics_have_a_value_for_stop_and_actors_no_clock():
    assert [critic.choices for critic in LEARNER.critics] == [3, 3]
    assert LEARNER.actors.actor.rounds == 0
