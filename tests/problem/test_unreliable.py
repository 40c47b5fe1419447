"""Lost readings, silent agents and late stop bits: what happens, what is remembered, and what the posterior is."""

import itertools
import json
from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape import Centralized, Unreliable, UserError, check_problem
from icmape.play.episodes import play
from icmape.play.rollout import Episode, histories, play_greedy
from icmape.problem.spec import build, build_named, describe, full_kind, split_kind
from icmape.problem.unreliable import failing, reliable, takes_missing
from icmape.zoo.bandit.bandit import Bandit
from icmape.zoo.signal.signal import DOWN, Signal
from tests.coins import Coins
from tests.support import lively_team, script, small_bandit

WORLDS = 400
ROUNDS = [[0, 1, 1]] * 3
STOP = 2  # of the small bandit


def played(problem, rounds, worlds: int = WORLDS, seed: int = 0) -> Episode:
    """Episodes of a script."""
    keys = jax.random.split(jax.random.key(seed), worlds)
    return jax.tree.map(np.asarray, jax.jit(partial(play_greedy, problem, script(problem, rounds)))(keys))


def test_without_failures_episodes_and_answers_are_the_same_bit_for_bit() -> None:
    team = lively_team()
    bare, same = (play(t, 64, 3) for t in (team, replace(team, problem=Unreliable(team.problem))))
    assert np.ptp(bare.played.stop) > 0
    np.testing.assert_array_equal(bare.played.actions, same.played.actions)
    np.testing.assert_array_equal(bare.played.observations, same.played.observations.reading)
    np.testing.assert_array_equal(bare.played.stop, same.played.stop)
    np.testing.assert_array_equal(bare.final, same.final)


def test_readings_are_lost_at_the_rate_and_the_world_is_that_without_losses() -> None:
    """A share further from 0.3 than 0.03 has probability 2e-7."""
    lossy, bare = played(Unreliable(small_bandit(), lost=0.3), ROUNDS), played(small_bandit(), ROUNDS)
    seen = lossy.observations
    assert seen.arrived[:, 0].all()
    arrived = seen.arrived[:, 1:]
    assert abs((~arrived).mean() - 0.3) < 0.03
    assert seen.acted.all()
    assert not seen.silent.any()
    np.testing.assert_array_equal(seen.reading[:, 1:], np.where(arrived, bare.observations[:, 1:], 0))


def test_a_silent_agent_does_nothing_and_its_stop_is_not_heard() -> None:
    """Nobody plays, so readings and loads are none; player 0 would stop in round 1, and the episode ends at T."""
    problem = Unreliable(small_bandit(), silent=1.0)
    episode = played(problem, [[0, 0, 0], [STOP, 0, 0]], worlds=4)
    assert (episode.stop == problem.horizon - 1).all()
    assert not episode.observations.acted[:, 1:].any()
    belief = problem.belief()
    for number in range(1, 4):
        seen = jax.tree.map(lambda x, n=number: jnp.asarray(x[0, n]), episode.observations)
        belief = problem.update_belief(belief, jnp.zeros(3, jnp.int32), seen)
    assert all(not np.any(counts) for counts in belief)


def test_agents_fall_silent_at_the_rate_and_for_good() -> None:
    """After 4 draws 1 - 0.8⁴ = 0.59 are silent; further from it than 0.07 has probability 1e-6."""
    seen = played(Unreliable(small_bandit(), silent=0.2), ROUNDS).observations
    assert abs(seen.silent[:, 3].mean() - (1 - 0.8**4)) < 0.07
    assert not np.any(seen.silent[:, :-1] & ~seen.silent[:, 1:])
    np.testing.assert_array_equal(seen.acted[:, 1:], ~seen.silent[:, :-1])


def test_silent_players_are_no_load() -> None:
    """All on one arm of capacity 1 that always pays: whoever plays alone is paid, and nobody else."""
    sure = Bandit(arms=1, players=2, horizon=4, mean_low=0.999, mean_high=1.0)
    episode = played(Unreliable(sure, silent=0.3), [[0, 0]])
    alone = episode.observations.acted[:, 1:].sum(axis=2) == 1
    strict = (episode.hypothesis[:, 0] == 0)[:, None]
    paid = episode.observations.reading[:, 1:].sum(axis=2)
    assert (paid[alone] == 1).mean() > 0.98
    assert not paid[~alone & strict].any()


def test_a_late_stop_bit_costs_a_round_in_which_the_others_act() -> None:
    rounds = [[0, 1, 1], [STOP, 1, 0], [0, 0, 0]]
    prompt, late = (played(Unreliable(small_bandit(), late=rate), rounds, worlds=8) for rate in (0.0, 1.0))
    assert (prompt.stop == 1).all()
    assert (late.stop == 2).all()
    np.testing.assert_array_equal(late.actions[0, 1:3], [[STOP, 1, 0], [STOP, 0, 0]])
    np.testing.assert_array_equal(late.observations.acted[0, 2], [False, True, True])
    np.testing.assert_array_equal(late.observations.arrived[0, 2], [False, True, True])


def test_nobody_is_late_where_all_agents_stop_or_the_horizon_ends_the_episode() -> None:
    problem = Unreliable(small_bandit(), late=1.0)
    assert (played(problem, [[0, 0, 0], [STOP] * 3], worlds=4).stop == 1).all()
    assert (played(problem, [[0, 0, 0]], worlds=4).stop == problem.horizon - 1).all()


def test_only_agents_that_heard_in_time_rest() -> None:
    """Each of two listeners is late with 0.5, independently: in 3 of 4 episodes one is. A share further off than 0.11
    has probability 4e-7."""
    episode = played(Unreliable(small_bandit(), late=0.5), [[0, 1, 1], [STOP, 1, 0], [0, 0, 0]])
    longer = episode.stop == 2
    assert abs(longer.mean() - 0.75) < 0.11
    acted = episode.observations.acted[longer, 2]
    assert not acted[:, 0].any()
    assert {tuple(row) for row in acted[:, 1:].tolist()} == {(True, False), (False, True), (True, True)}


# -- the posterior


def brute_force(bandit: Bandit, rounds: list[tuple[list, list]]) -> np.ndarray:
    """p(C | data) by Bayes' rule over all capacities and a fine grid of means. Actions and readings may be None."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    means = 0.65 + 0.35 * nodes
    chances = []
    for arm in range(bandit.arms):
        row = []
        for capacity in range(1, bandit.players + 1):
            likelihood = np.ones_like(means)
            for actions, readings in rounds:
                load = actions.count(arm)
                for action, reading in zip(actions, readings, strict=True):
                    if action == arm and reading is not None:
                        pays = means if load <= capacity else np.zeros_like(means)
                        likelihood = likelihood * (pays if reading else 1 - pays)
            row.append(np.sum(weights * likelihood))
        chances.append(np.array(row) / np.sum(row))
    return np.array(chances)


def test_the_posterior_under_failures_is_that_of_brute_force() -> None:
    bandit = Bandit(arms=2, players=3, horizon=7)
    rounds = [
        ([0, 0, 1], [1, None, 0]),  # player 1's reading is lost, its load counts
        ([0, None, 0], [None, None, 1]),  # player 1 did nothing
        ([1, 1, 1], [0, 0, None]),
        ([None, 1, 0], [None, 0, 0]),
    ]
    problem = Unreliable(bandit)
    belief = problem.belief()
    for actions, readings in rounds:
        marks = (jnp.array([a is not None for a in actions]), jnp.array([r is not None for r in readings]))
        seen = problem.start(bandit.sample(key=jax.random.key(0)), key=jax.random.key(0))[1]
        seen = seen._replace(reading=jnp.array([r or 0 for r in readings], jnp.int8), acted=marks[0], arrived=marks[1])
        belief = problem.update_belief(belief, jnp.array([a or 0 for a in actions]), seen)
    wanted = brute_force(bandit, rounds)
    np.testing.assert_allclose(np.exp(problem.log_posterior(belief)), wanted, atol=1e-5)
    forgetful = [([a if r is not None else None for a, r in zip(*row, strict=True)], row[1]) for row in rounds]
    assert np.abs(brute_force(bandit, forgetful) - wanted).max() > 0.05  # the loads of lost readings matter


class Forgetful(Bandit):
    """Its posterior takes a player whose reading is lost for one that did not play."""

    def update_partial_belief(self, belief, actions, observation, acted, arrived):
        return super().update_partial_belief(belief, actions, observation, arrived, arrived)


def test_the_check_of_a_problem_finds_the_posterior_exact_and_a_wrong_one_not() -> None:
    check_problem(Unreliable(Bandit(2, 3, 7), lost=0.3, silent=0.1, late=0.2))
    with pytest.raises(UserError, match="posterior is not exact"):
        check_problem(Unreliable(Forgetful(2, 3, 7), lost=0.3))


def test_a_lost_window_tells_the_posterior_nothing() -> None:
    """With all windows lost the posterior is the prior; with one, that of the windows of the others."""
    signal = Signal(grid=5, window=1, move=1, detectors=1, distance=2, horizon=4, observe_start=False)
    problem, key = Unreliable(signal), jax.random.key(1)
    world = signal.sample(key=key)
    state, _ = signal.start(world, key=key)
    _, seen = signal.step(world, state, jnp.array([DOWN, DOWN]), key=key)
    prior, everyone = problem.belief(), jnp.ones(2, bool)

    def after(*arrived: bool) -> np.ndarray:
        belief = signal.update_partial_belief(prior, jnp.zeros(2, jnp.int32), seen, everyone, jnp.array(arrived))
        return np.asarray(signal.log_posterior(belief))

    np.testing.assert_allclose(after(False, False), signal.log_posterior(prior), atol=1e-5)
    np.testing.assert_allclose(
        after(True, True), signal.log_posterior(signal.update_belief(prior, jnp.zeros(2, jnp.int32), seen)), atol=1e-5
    )
    possible = np.isfinite(after(True, True))
    none, detector, field, both = (
        after(*which)[possible] for which in ((False, False), (True, False), (False, True), (True, True))
    )
    apart = (detector - none) + (field - none) - (both - none)
    np.testing.assert_allclose(apart, apart[0], atol=1e-4)  # readings add up, given the source
    assert np.ptp(field - none) > 0.1


# -- memories and features


def test_an_agent_knows_that_it_moved_although_its_window_is_lost() -> None:
    problem = Unreliable(Signal(grid=15, detectors=1, horizon=4), lost=1.0)
    key = jax.random.key(0)
    world = problem.sample(key=key)
    state, first = problem.start(world, key=key)
    memories = jax.vmap(problem.init_memory)(jnp.arange(2), first)
    actions = jnp.array([DOWN, DOWN])
    state, seen = problem.step(world, state, actions, key=key)
    later = jax.vmap(problem.update_memory)(memories, jnp.arange(2), actions, seen)
    np.testing.assert_array_equal(later.inner.positions[:, 0], state.inner)
    np.testing.assert_array_equal(later.inner.queries, memories.inner.queries)
    assert not seen.arrived.any()


class Tosses(Coins):
    """Features of the last toss, not of all of them."""

    def features(self, memory):
        return super().features(memory)._replace(token=memory.astype(jnp.float32))

    def update_memory(self, memory, agent, action, observation):
        return super().update_memory(jnp.zeros(2, jnp.int32), agent, action, observation)


class Sums(Tosses):
    """The same, with a memory that stays as it is."""

    def miss_memory(self, memory, agent, action):
        return memory


@pytest.mark.parametrize("kind", [Tosses, Sums])
def test_the_last_reading_is_not_shown_again_unless_the_problem_says_so(kind: type[Coins]) -> None:
    """Agent 1's second toss is lost."""
    problem = Unreliable(kind(agents=2, horizon=4))
    world = problem.sample(key=jax.random.key(0))
    _, seen = problem.start(world, key=jax.random.key(0))
    memories = jax.vmap(problem.init_memory)(jnp.arange(2), seen)
    for arrived in ([True, True], [True, False]):
        seen = seen._replace(reading=jnp.array([1, 1], jnp.int8), arrived=jnp.array(arrived))
        memories = jax.vmap(problem.update_memory)(memories, jnp.arange(2), jnp.zeros(2, jnp.int32), seen)
    missing = [1, 0] if kind is Sums else [0, 0]
    np.testing.assert_array_equal(problem.team_features(memories).token, [1, 0, *missing])
    own = jax.vmap(problem.features)(memories)
    np.testing.assert_array_equal(own.token, [[1, 0], missing])
    np.testing.assert_array_equal(own.fresh, [True, False])
    assert problem.team_features(memories).fresh


def test_histories_of_stored_episodes_show_what_was_missing() -> None:
    problem = Unreliable(small_bandit(), lost=0.5, silent=0.2)
    episode = jax.tree.map(lambda x: jnp.asarray(x[0]), played(problem, ROUNDS, worlds=2))
    seen = jax.jit(partial(histories, problem))(episode)
    marks = episode.observations
    empty = ~np.asarray(seen.local.token).any(axis=-1).T
    np.testing.assert_array_equal(empty[1:], ~np.asarray(marks.arrived)[1:])
    np.testing.assert_array_equal(seen.stop_mask, ~np.asarray(marks.silent))


# -- descriptions


def test_files_name_the_rates() -> None:
    for problem in (Unreliable(Coins(agents=2), lost=0.1, late=0.25), Centralized(Unreliable(Coins(agents=2), 0.1))):
        described = json.loads(json.dumps(describe(problem)))
        assert eqx.tree_equal(build(described, Coins), problem, typematch=True)
        assert eqx.tree_equal(build(described, Coins(agents=2)), problem, typematch=True)
    bandit = Centralized(Unreliable(small_bandit(), 0.1, 0.02, 0.3))
    name = full_kind(describe(bandit))
    assert name == "centralized-unreliable(lost=0.1,silent=0.02,late=0.3)-bandit"
    assert eqx.tree_equal(build_named(name, describe(bandit)["arguments"]), bandit, typematch=True)
    assert split_kind("bandit") == ("bandit", {"centralized": False})


def test_rates_are_added_and_removed_around_any_problem() -> None:
    bare = small_bandit()
    for problem in (bare, Centralized(bare)):
        under = failing(problem, lost=0.2)
        assert eqx.tree_equal(reliable(under), problem, typematch=True)
        assert failing(under) is not under
        assert takes_missing(under) is under
        assert describe(takes_missing(problem))["unreliable"] == {"lost": 0.0, "silent": 0.0, "late": 0.0}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Unreliable(Unreliable(small_bandit())), "unreliable already"),
        (lambda: Unreliable(Centralized(small_bandit())), "Centralized.Unreliable.problem"),
        (lambda: Unreliable(small_bandit(), lost=1.5), "lost is a probability"),
        (lambda: Unreliable(small_bandit(), late=float("nan")), "late is a probability"),
        (lambda: split_kind("unreliable(lost=x)-bandit"), "takes lost, silent and late"),
    ],
)
def test_what_cannot_be_is_refused(make, says: str) -> None:
    with pytest.raises(UserError, match=says):
        make()


def test_a_centralized_controller_gets_the_readings_that_arrive() -> None:
    problem = Centralized(Unreliable(small_bandit(), lost=0.5))
    joint = [int(problem.join([0, 1, 1]))]
    episode = played(problem, [joint] * 3, worlds=50)
    seen = episode.observations
    assert seen.arrived.shape == (50, 7, 1, 3)
    patterns = {tuple(row) for row in seen.arrived[:, 1, 0].tolist()}
    assert patterns == set(itertools.product([False, True], repeat=3))
