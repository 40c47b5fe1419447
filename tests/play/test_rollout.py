"""Episodes: who ends them, what is stored, and what noise may do."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning import value
from icmape.learning.config import Config, with_algorithm
from icmape.networks import Actors
from icmape.play.policy import LearnedPolicy
from icmape.play.rollout import Drawn, Noise, histories, rollout
from icmape.settings import override
from icmape.zoo.bandit.bandit import Bandit
from tests.coins import Coins
from tests.support import lively_actors, script, small_bandit, unroll

WORLDS = 8
GO, STOP = 0, 1  # Coins has one action


@eqx.filter_jit
def play(problem, policy, noise, keys):
    return rollout(problem, policy, noise, keys, jnp.zeros(keys.shape[0], bool))


def noise(rate: float = 0.0, keep_stop: float = 1.0, worlds: int = WORLDS) -> Noise:
    return Noise(jnp.full(worlds, rate), jnp.full(worlds, keep_stop))


def keys(*numbers: int):
    return jax.vmap(jax.random.key)(jnp.asarray(numbers, jnp.uint32))


class TestStop:
    """Three agents toss a coin; the reading 0 means that nothing was stored."""

    problem = Coins(agents=3, horizon=6)

    def test_one_agents_stop_ends_the_episode_before_sampling(self):
        plan = [[GO, GO, GO]] * 3 + [[GO, STOP, GO]]
        episode = play(self.problem, script(self.problem, plan), noise(), keys(*range(WORLDS)))
        np.testing.assert_array_equal(episode.stop, 3)
        # rounds 0, 1 and 2 gave readings, seen in rounds 1, 2 and 3; the stop round sampled nothing
        readings = np.any(np.asarray(episode.observations) != 0, axis=2)
        np.testing.assert_array_equal(readings, np.broadcast_to([0, 1, 1, 1, 0, 0], (WORLDS, 6)))
        np.testing.assert_array_equal(episode.actions[:, 3], np.broadcast_to([GO, STOP, GO], (WORLDS, 3)))
        assert not np.any(episode.actions[:, 4:])

    def test_stop_is_forced_in_the_last_round(self):
        never = script(self.problem, [[GO, GO, GO]])
        episode = play(self.problem, never, noise(), keys(*range(WORLDS)))
        np.testing.assert_array_equal(episode.stop, 5)
        np.testing.assert_array_equal(episode.actions[:, 5], STOP)
        assert np.all(np.asarray(episode.observations)[:, 1:] != 0)  # five rounds of readings

    def test_a_stop_in_round_zero_leaves_no_data(self):
        episode = play(self.problem, script(self.problem, [[STOP, GO, GO]]), noise(), keys(*range(WORLDS)))
        np.testing.assert_array_equal(episode.stop, 0)
        assert not np.any(episode.observations)

    def test_noise_never_stops(self):
        never = script(self.problem, [[GO, GO, GO]])
        episode = play(self.problem, never, noise(rate=1.0), keys(*range(WORLDS)))
        np.testing.assert_array_equal(episode.stop, 5)

    def test_a_stop_that_is_not_obeyed_counts_as_explored(self):
        plan = [[GO, GO, GO]] * 2 + [[STOP, GO, GO]]
        episode = play(self.problem, script(self.problem, plan), noise(keep_stop=0.0), keys(*range(WORLDS)))
        np.testing.assert_array_equal(episode.stop, 5)
        np.testing.assert_array_equal(episode.explored[:, :5], np.broadcast_to([0, 0, 1, 1, 1], (WORLDS, 5)))

    def test_a_forced_stop_is_not_exploration(self):
        """At the horizon there is no choice, so the trace up to it must not be cut."""
        never = script(self.problem, [[GO, GO, GO]])
        episode = play(self.problem, never, noise(), keys(*range(WORLDS)))
        assert not np.any(episode.explored)


# -- learned actors


@pytest.fixture(scope="module")
def problem() -> Bandit:
    return small_bandit()


@pytest.fixture(scope="module")
def actors() -> Actors:
    return lively_actors()


def episodes(problem, actors, noise, *numbers):
    return play(problem, LearnedPolicy(actors), noise, keys(*numbers))


def greedy_again(problem, actors, episode):
    """The actors' own choices at every stored round, read off the rebuilt histories."""
    seen = jax.jit(jax.vmap(lambda e: histories(problem, e)))(episode)
    scores = eqx.filter_jit(jax.vmap(lambda views: unroll(actors, views)))(seen.local)
    return np.swapaxes(np.asarray(scores.argmax(-1)), 1, 2)


def test_stored_actions_are_the_policys_own_without_noise(problem, actors):
    episode = episodes(problem, actors, noise(), *range(WORLDS))
    assert len(set(np.asarray(episode.stop).tolist())) > 1  # the episodes do differ
    expected = greedy_again(problem, actors, episode)
    for world in range(WORLDS):
        stop = int(episode.stop[world])
        if stop < problem.horizon - 1:  # there the stop is forced
            np.testing.assert_array_equal(episode.actions[world, stop], expected[world, stop])
        np.testing.assert_array_equal(episode.actions[world, :stop], expected[world, :stop])
    assert not np.any(episode.explored)


def test_explored_marks_exactly_the_rounds_that_differ_from_greedy(problem, actors):
    episode = episodes(problem, actors, noise(rate=0.4, keep_stop=0.5), *range(WORLDS))
    expected = greedy_again(problem, actors, episode)
    differs = np.any(np.asarray(episode.actions) != expected, axis=2)
    rounds = np.arange(problem.horizon)[None]
    free = rounds < np.minimum(np.asarray(episode.stop)[:, None] + 1, problem.horizon - 1)
    np.testing.assert_array_equal(np.asarray(episode.explored)[free], differs[free])
    assert np.any(differs[free])
    assert not np.all(differs[free])


def test_a_greedy_world_among_noisy_ones_is_not_explored(problem, actors):
    half = jnp.arange(WORLDS) < WORLDS // 2
    mixed = Noise(jnp.where(half, 0.0, 1.0), jnp.where(half, 1.0, 0.0))
    episode = episodes(problem, actors, mixed, *range(WORLDS))
    alone = episodes(problem, actors, noise(), *range(WORLDS))
    assert not np.any(episode.explored[: WORLDS // 2])
    assert np.any(episode.explored[WORLDS // 2 :])
    np.testing.assert_array_equal(episode.actions[: WORLDS // 2], alone.actions[: WORLDS // 2])


def test_an_episode_does_not_depend_on_the_other_worlds(problem, actors):
    loud = noise(rate=0.3, keep_stop=0.7)
    here = episodes(problem, actors, loud, *range(WORLDS))
    there = episodes(problem, actors, loud, 91, 92, 5, 93, 2, 94, 95, 96)
    for row, other in ((5, 2), (2, 4)):
        jax.tree.map(lambda a, b, i=row, j=other: np.testing.assert_array_equal(a[i], b[j]), here, there)
    assert np.any(here.actions[5] != here.actions[2])


def test_histories_are_the_memories_stepped_by_hand(problem, actors):
    episode = episodes(problem, actors, noise(rate=0.3), *range(WORLDS))
    one = jax.tree.map(lambda x: x[3], episode)
    seen = jax.jit(lambda e: histories(problem, e))(one)
    tokens = np.zeros((problem.horizon, 3, 4))
    for t in range(1, int(one.stop) + 1):  # round t sees what round t-1 did
        for player in range(3):
            arm, paid = int(one.actions[t - 1, player]), int(one.observations[t, player])
            tokens[t, player, arm if paid else 2 + arm] = 1.0
    stop = int(one.stop) + 1
    assert stop > 2
    np.testing.assert_array_equal(np.swapaxes(seen.local.token, 0, 1)[:stop], tokens[:stop])
    np.testing.assert_array_equal(seen.team.token[:stop, :12], tokens[:stop].reshape(stop, -1))  # then loads


class NoRepeat(Bandit):
    """An arm must not be pulled twice in a row; each player knows that by itself."""

    def action_mask(self, memory):
        return jnp.arange(self.actions) != memory.arm


def test_forbidden_actions_are_never_taken():
    problem = NoRepeat(arms=3, players=2, horizon=6)
    stubborn = script(problem, [[0, 0]])
    for loudness in (0.0, 1.0):
        episode = play(problem, stubborn, noise(rate=loudness), keys(*range(WORLDS)))
        taken = np.asarray(episode.actions)[:, :5]
        assert np.all(taken[:, 1:] != taken[:, :-1])


# -- one agent's choice, many times


DRAWS = 4000


@eqx.filter_jit
def choices(scores, allowed, noise):
    """Many draws of one decision: what was chosen, and whether that was exploration."""
    keys = jax.random.split(jax.random.key(0), DRAWS)
    return jax.vmap(lambda key: noise.choose(scores, allowed, key=key))(keys)


FIRST_ARM, ANY_ARM = jnp.array([[1.0, 0.0, 0.0, -1.0]]), jnp.ones((1, 3), bool)


def test_noise_has_the_rate_it_says():
    """A noisy agent of three arms leaves the greedy one with chance 2/3; 5 standard errors: false alarm 1e-6."""
    chosen, explored = choices(FIRST_ARM, ANY_ARM, Noise(jnp.float32(0.3), jnp.float32(1.0)))
    assert float(explored.mean()) == pytest.approx(0.2, abs=5 * np.sqrt(0.2 * 0.8 / DRAWS))
    np.testing.assert_array_equal(explored, np.asarray(chosen)[:, 0] != 0)
    assert chosen.max() == 2  # an arm, never STOP


@pytest.mark.parametrize("name", ["vdn", "qmix", "iql"])
def test_value_learners_explore_less_and_less_and_not_in_greedy_worlds(name):
    changes = {"algorithm.epsilon": 0.4, "algorithm.epsilon_final": 0.2, "algorithm.stop_obey_prob": 0.5}
    config = override(with_algorithm(Config(), name), changes)
    for progress, rate in ((0.0, 0.4), (0.5, 0.3), (1.0, 0.2)):
        found = value.noise(config, jnp.float32(progress), jnp.array([True, False]))
        np.testing.assert_allclose(found.rate, [0.0, rate], atol=1e-6)
        np.testing.assert_allclose(found.keep_stop, [1.0, 0.5])


def test_a_forbidden_action_is_out_of_the_noise_too():
    """One allowed action of three: noise at full rate can only take it, and that is then the greedy choice."""
    only = jnp.array([[False, True, False]])
    chosen, explored = choices(FIRST_ARM, only, Noise(jnp.float32(1.0), jnp.float32(1.0)))
    np.testing.assert_array_equal(chosen, 1)
    assert not np.any(explored)


def test_noise_does_not_talk_an_agent_out_of_its_stop():
    """A greedy STOP that is obeyed stays, however loud the noise on the arms."""
    wants_stop = FIRST_ARM.at[0, 3].set(2.0)
    chosen, explored = choices(wants_stop, ANY_ARM, Noise(jnp.float32(1.0), jnp.float32(1.0)))
    np.testing.assert_array_equal(chosen, 3)
    assert not np.any(explored)
    chosen, explored = choices(wants_stop, ANY_ARM, Noise(jnp.float32(0.0), jnp.float32(0.5)))
    assert float(np.mean(chosen == 3)) == pytest.approx(1 / 2, abs=5 * np.sqrt(1 / 4 / DRAWS))
    np.testing.assert_array_equal(explored, np.asarray(chosen)[:, 0] != 3)


# -- the same, drawn from the scores


def drawn(keep_stop: float = 1.0, greedy: bool = False) -> Drawn:
    return Drawn(jnp.asarray(greedy), jnp.float32(keep_stop))


UNEVEN = jnp.array([[0.5, -0.3, 1.0, 0.2], [1.5, 0.0, -0.5, -1.0]])
ALL_BUT_ONE = jnp.array([[True, True, False], [True, True, True]])


def chances() -> np.ndarray:
    """The softmax over what is allowed and STOP, by hand."""
    raised = np.exp(np.asarray(UNEVEN, np.float64)) * np.append(np.asarray(ALL_BUT_ONE), np.ones((2, 1)), axis=1)
    return raised / raised.sum(1, keepdims=True)


def share(happened) -> float:
    return float(np.mean(np.asarray(happened)))


def error(chance: float) -> float:
    """Five standard errors: a false alarm has probability 6e-7."""
    return 5 * np.sqrt(chance * (1 - chance) / DRAWS)


def test_choices_are_drawn_as_often_as_their_softmax_says():
    """Eight frequencies: some false alarm has probability 5e-6. What is forbidden is never drawn."""
    chosen, overruled = choices(UNEVEN, ALL_BUT_ONE, drawn())
    for agent, choice in np.ndindex(2, 4):
        chance = chances()[agent, choice]
        assert share(chosen[:, agent] == choice) == pytest.approx(chance, abs=error(chance))
    assert not np.any(chosen[:, 0] == 2)
    assert not np.any(overruled)


def test_agents_draw_apart_from_each_other():
    """Both stop as often as the product says (false alarm 6e-7)."""
    chosen, _ = choices(UNEVEN, ALL_BUT_ONE, drawn())
    both = chances()[0, 3] * chances()[1, 3]
    assert share(np.all(np.asarray(chosen) == 3, axis=1)) == pytest.approx(both, abs=error(both))


def test_greedy_worlds_take_the_largest_score_that_is_allowed():
    chosen, overruled = choices(UNEVEN, ALL_BUT_ONE, drawn(greedy=True))
    np.testing.assert_array_equal(chosen, np.broadcast_to([0, 0], chosen.shape))
    assert not np.any(overruled)


def test_a_drawn_stop_is_overruled_for_all_agents_at_once():
    """Kept with probability 1/4. Otherwise all draw again, among their arms (false alarms: 6e-7 each)."""
    chosen, overruled = (np.asarray(x) for x in choices(UNEVEN, ALL_BUT_ONE, drawn(keep_stop=0.25)))
    anyone = 1 - np.prod(1 - chances()[:, 3])
    assert share(overruled) == pytest.approx(0.75 * anyone, abs=error(0.75 * anyone))
    assert share(np.any(chosen == 3, axis=1)) == pytest.approx(0.25 * anyone, abs=error(0.25 * anyone))
    assert not np.any(chosen[overruled] == 3)
    given_on = chances()[1, 0] / (1 - chances()[1, 3])
    spread = 5 * np.sqrt(given_on * (1 - given_on) / overruled.sum())
    assert share(chosen[overruled][:, 1] == 0) == pytest.approx(given_on, abs=spread)
    assert not np.any(chosen[:, 0] == 2)


@pytest.mark.parametrize("greedy", [True, False])
def test_a_threshold_forces_or_forbids_stop(greedy):
    """Its scores of STOP are plus and minus infinity."""
    for score, stops in ((jnp.inf, True), (-jnp.inf, False)):
        chosen, _ = choices(UNEVEN.at[:, 3].set(score), ALL_BUT_ONE, drawn(greedy=greedy))
        assert np.all((np.asarray(chosen) == 3) == stops)
    chosen, overruled = choices(UNEVEN.at[:, 3].set(jnp.inf), ALL_BUT_ONE, drawn(keep_stop=0.0, greedy=greedy))
    assert np.all(overruled)
    assert np.all(np.asarray(chosen) < 3)
    assert not np.any(chosen[:, 0] == 2)
