"""Seekers: the field agent's posterior is exact, agents see nothing but their own data, and greed saves rounds."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.baselines.registry import baseline_team, baselines_for
from icmape.baselines.tuning import Watched
from icmape.play.inference import ExactInference
from icmape.play.policy import Round
from icmape.play.rollout import Episode, histories, play_greedy
from icmape.problem import Features
from icmape.zoo.signal.seekers import local_greedy, local_sweep, scores
from icmape.zoo.signal.signal import RIGHT, Signal, SignalObservation
from icmape.zoo.signal.tours import detectors_sweep, sweep
from tests.support import RUNS_LONG, once

SIZES = {"grid": 9, "window": 3, "move": 3, "distance": 4, "decay": 0.5, "horizon": 8}
PROBLEM = Signal(**SIZES)
LATER = Signal(**SIZES, observe_start=False)
SHARED = Signal(**SIZES, information="shared-positions")
MAKE = {
    "sweep-local-stop": lambda problem: local_sweep(problem, sweep(problem)),
    "local-greedy": lambda problem: local_greedy(problem, detectors_sweep(problem)),
}


def policy_of(name: str, problem: Signal = PROBLEM):
    return replace(MAKE[name](problem), level=jnp.float32(0.97))


def played(problem: Signal, policy, worlds: int = 8) -> tuple[Episode, Features]:
    """Episodes and what each agent saw in them."""
    keys = jax.random.split(jax.random.key(5), worlds)

    def play_and_look() -> tuple[Episode, Features]:
        episodes = play_greedy(problem, policy, keys)
        return episodes, jax.vmap(partial(histories, problem))(episodes).local

    return once(play_and_look)


@pytest.mark.parametrize("problem", [PROBLEM, LATER, SHARED])
def test_without_a_detection_the_field_agents_posterior_is_everyones(problem):
    """Recovered from its maps and the others' tours, against the belief that is told every window."""
    policy = policy_of("local-greedy", problem)
    episodes, views = played(problem, policy)

    def both(episode: Episode, views: Features):
        def advance(carry, number):
            mind, belief = carry
            mind, _ = policy.take_in(mind, jax.tree.map(lambda x: x[-1, number], views), number)
            seen = jax.tree.map(lambda x: x[number], episode.observations)
            acted = jnp.minimum(episode.actions[number - 1].astype(jnp.int32), problem.actions - 1)
            told = jax.lax.cond(
                number == 0, lambda: problem.belief(seen), lambda: problem.update_belief(belief, acted, seen)
            )
            return (mind, told), (problem.log_posterior(mind.belief), problem.log_posterior(told))

        start = (policy.start(), problem.belief())
        return jax.lax.scan(advance, start, jnp.arange(problem.horizon))[1]

    own, everyones = once(lambda: jax.vmap(both)(episodes, views))
    detected = np.max(np.asarray(episodes.observations.window)[:, :, :-1], axis=(2, 3, 4)) > 0
    compared = 0
    for world, stop in enumerate(np.asarray(episodes.stop)):
        for number in range(stop + 1):
            if not detected[world, : number + 1].any():
                compared += 1
                np.testing.assert_allclose(
                    np.exp(own[world, number]), np.exp(everyones[world, number]), atol=1e-4, rtol=1e-3
                )
    assert compared > 8


@pytest.mark.parametrize("name", list(MAKE))
def test_deciding_for_all_is_deciding_for_each(name):
    policy = policy_of(name)
    views = played(PROBLEM, policy, 2)[1]

    def both(views: Features):
        key = jax.random.key(0)

        def advance(carry, number):
            mind, own = carry
            now = jax.tree.map(lambda x: x[:, number], views)
            mind, together = policy.decide(mind, Round(number, now, jnp.zeros(3, jnp.int32), (), ()), key=key)
            own, apart = jax.vmap(lambda s, i, v: policy.decide_agent(s, i, v, number, key=key))(
                own, jnp.arange(3), now
            )
            return (mind, own), (together, apart)

        one = policy.start_agent()
        each = jax.tree.map(lambda x: jnp.broadcast_to(x, (3, *x.shape)), one)
        return jax.lax.scan(advance, (policy.start(), each), jnp.arange(4))[1]

    together, apart = once(lambda: both(jax.tree.map(lambda x: x[0], views)))
    np.testing.assert_allclose(together, apart, atol=1e-5)


@pytest.mark.parametrize("name", list(MAKE))
def test_anothers_data_cannot_move_my_scores(name):
    policy = policy_of(name)
    views = played(PROBLEM, policy, 2)[1]
    first, second = (jax.tree.map(lambda x, i=i: x[i], views) for i in (0, 1))

    @jax.jit
    def decide(views: Features):
        def advance(mind, number):
            now = jax.tree.map(lambda x: x[:, number], views)
            seen = Round(number, now, jnp.zeros(3, jnp.int32), (), ())
            return policy.decide(mind, seen, key=jax.random.key(0))

        return jax.lax.scan(advance, policy.start(), jnp.arange(3))[1]

    plain = np.asarray(decide(first))
    for agent in range(3):
        mixed = jax.tree.map(lambda x, y, i=agent: y.at[i].set(x[i]), first, second)
        np.testing.assert_array_equal(np.asarray(decide(mixed))[:, agent], plain[:, agent])
    assert not np.array_equal(np.asarray(decide(second))[:, 2], plain[:, 2])


def test_a_detector_alone_follows_its_tour_and_stops_when_it_has_detected():
    policy = policy_of("local-greedy")

    @jax.jit
    def act(window):
        first = SignalObservation(window, jnp.array([[1, 1]], jnp.int8))
        view = PROBLEM.features(PROBLEM.init_memory(jnp.int32(0), first))
        return policy.tour(jnp.int32(0), view, jnp.int32(0))

    nothing = jnp.zeros((3, 3), jnp.float16)
    assert int(jnp.argmax(act(nothing))) == int(policy.moves[0, 0])
    assert int(jnp.argmax(act(nothing.at[0, 2].set(1)))) == PROBLEM.actions


def test_scores_are_above_zero_for_stop_when_something_is_sure():
    found = scores(PROBLEM, jnp.int32(RIGHT), jnp.float32(0.8), jnp.float32(0.5))
    np.testing.assert_allclose(found, [-1, -1, -1, 0, -1, 0.3], atol=1e-6)


def confidences(name: str, problem: Signal, level: float, worlds: int) -> tuple[np.ndarray, np.ndarray]:
    """The rounds in which a baseline stops, and the exact posterior's confidence in all rounds until then."""
    behaviour = baseline_team(name, problem, level=level).behaviour()

    @partial(jax.jit, compiler_options=RUNS_LONG)
    def judged(keys):
        episodes = play_greedy(problem, behaviour, keys)
        logs = jax.vmap(partial(ExactInference().unroll, problem))(episodes)
        return episodes.stop, jnp.exp(jnp.max(logs, axis=-1))

    stop, sure = judged(jax.random.split(jax.random.key(3), worlds))
    return np.asarray(stop), np.where(np.arange(problem.horizon)[None] <= stop[:, None], sure, 0.0)


def test_what_levels_are_compared_with_is_the_teams_confidence():
    """So that a level can be tuned without playing the policy again."""
    stop, sure = confidences("local-greedy", PROBLEM, 0.6, 40)
    reached = np.maximum.accumulate(sure, axis=1) > 0.6
    np.testing.assert_array_equal(stop, np.minimum((~reached).sum(axis=1), PROBLEM.horizon - 1))


def test_a_sweep_loses_nothing_when_each_stops_alone():
    """Without a detection the field agent knows what all know, and a detection is more certain than this level."""
    together, apart = (confidences(name, PROBLEM, 0.4, 60)[0] for name in ("sweep", "sweep-local-stop"))
    np.testing.assert_array_equal(together, apart)
    assert len(set(together.tolist())) > 2, "neither all at once nor all at the end"


@pytest.mark.slow
def test_a_central_seeker_needs_fewer_rounds_than_a_sweep_at_the_same_accuracy():
    """The same 100 worlds for both, in which 2.54 and 2.70 rounds were found."""
    problem = Signal(grid=12, window=3, move=3, distance=5, decay=0.6, noise=0.1, horizon=14)
    taus = {}
    for name in ("sweep", "central-greedy"):
        stop, sure = confidences(name, problem, 0.9, 100)
        watched = Watched(np.maximum.accumulate(sure, axis=1), sure, stop)
        points = [watched.at(level) for level in np.linspace(0.1, 0.9, 60)]
        taus[name] = next(point.tau for point in points if point.accuracy >= 0.9)
    assert taus["central-greedy"] < taus["sweep"] - 0.05, taus


@pytest.mark.parametrize("name", [name for name in baselines_for(PROBLEM) if name != "plan"])  # test_planned.py
def test_every_baseline_plays(name):
    """Whoever stops at 0.8, or after four rounds, has stopped before the horizon in most of 20 worlds."""
    own = {"rounds": 4} if name == "turns" else {"level": 0.8}
    behaviour = baseline_team(name, PROBLEM, **own).behaviour()
    episodes = once(lambda: play_greedy(PROBLEM, behaviour, jax.random.split(jax.random.key(0), 20)))
    assert np.mean(np.asarray(episodes.stop)) < 5
