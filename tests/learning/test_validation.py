"""Validation: which team is kept, and how its stops are moved to the target, for one δ or several."""

from functools import cache
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning import validation
from icmape.learning.config import Config
from icmape.learning.validation import Best
from icmape.networks import Actors, InferenceNetwork
from icmape.play.policy import LearnedPolicy
from icmape.play.rollout import play_greedy
from icmape.settings import override
from tests.coins import Coins
from tests.support import Scripted, drawn, once

PROBLEM, WORLDS = Coins(agents=2, actions=2, horizon=8), 900
KEYS = jax.random.split(jax.random.key(0), WORLDS)
SETTINGS = {"validation_episodes": WORLDS, "max_rounds": 6, "plan.iterations": 0}


class Counts(InferenceNetwork):
    """Bayes' rule on both agents' counts, as far as their views tell them (a lead of three looks like one of four)."""

    kind: ClassVar[str] = "counts"

    @property
    def width(self):
        return 1

    def start(self):
        return ()

    def step(self, state, view):
        lead = jnp.sum(view.token.reshape(2, 7) * jnp.arange(-3.0, 4.0)[None])
        return state, lead * jnp.log(4.0) * jnp.array([-0.5, 0.5])

    def unroll(self, views):
        return jax.vmap(lambda view: self.step((), view)[1])(views)


class Moved(NamedTuple):
    before: LearnedPolicy
    after: LearnedPolicy
    told: dict[str, float]  # what is said of the team with its stops moved


@cache
def moved(stop: str, delta: float, rounds: int = 6) -> Moved:
    config = override(Config(), SETTINGS | {"delta": delta})
    make = lambda: Actors(PROBLEM, 4, "paper+last", 0.0, True, stop, rounds, key=jax.random.key(0))  # noqa: E731
    before = LearnedPolicy(drawn(make, seed=1, scale=1.0))
    nothing = jnp.zeros(())

    def move() -> tuple:
        seen = validation.watch_stops(PROBLEM, config, before, Counts(), KEYS)
        return validation.move_stops(Best(before, Counts(), nothing, nothing, jnp.int32(1)), seen, delta, 10_000)

    after, told = once(move)
    return Moved(before, after.policy, {name: float(x) for name, x in told.items()})


@jax.jit
def play(policy: LearnedPolicy) -> dict:
    """What a team does in the same worlds, with the stops that it has."""
    return validation.measure(PROBLEM, Counts(), play_greedy(PROBLEM, policy, KEYS), jnp.ones(WORLDS, bool))


def played(policy: LearnedPolicy) -> dict[str, float]:
    return {name: float(x) for name, x in play(policy).items()}


@pytest.mark.parametrize("stop", ["zero", "apart"])
def test_stops_come_as_early_as_accuracy_allows(stop):
    """0.9, what a certificate on 10,000 worlds needs (0.0049), and as much again as nine of ten will reach (0.0038)."""
    it = moved(stop, delta=0.1)
    needed = 0.9 + 0.3 * (1.645 + 1.282) / 100
    assert it.told["accuracy"] >= needed
    earlier = LearnedPolicy(it.after.actors.stopping_at(jnp.float32(-1e-3)))
    assert played(earlier)["accuracy"] < needed
    assert 1 < it.told["tau"] < 6
    assert it.told["forced"] < 1


@pytest.mark.parametrize("stop", ["zero", "apart"])
def test_what_is_told_is_what_the_team_does(stop):
    it = moved(stop, delta=0.1)
    does = played(it.after)
    for name, value in it.told.items():
        # the share forced is of the rounds that there are to a team, and not of the horizon
        wanted = value if name != "forced" else 0.0
        assert does[name] == pytest.approx(wanted, abs=2 / WORLDS), name


def test_actors_stay_otherwise():
    it = moved("apart", delta=0.1)
    pairs = zip(jax.tree.leaves(it.before), jax.tree.leaves(it.after), strict=True)
    changed = [(a, b) for a, b in pairs if np.any(a != b)]
    (old, new), *more = changed
    assert not more  # the biases of the last layer alone, and of those STOP's
    np.testing.assert_array_equal(old[:-1], new[:-1])


def test_where_nothing_suffices_stops_stay():
    """Ten tosses do not make it sure beyond 0.999."""
    it = moved("apart", delta=1e-3)
    for a, b in zip(jax.tree.leaves(it.before), jax.tree.leaves(it.after), strict=True):
        np.testing.assert_array_equal(a, b)
    does = played(it.before)
    for name in ("accuracy", "confidence", "tau"):
        assert it.told[name] == pytest.approx(does[name], abs=1e-5), name
    assert it.told["accuracy"] < 0.999


def test_a_team_without_a_clock_is_judged_to_the_horizon():
    """It does not know the settings' six rounds, so nothing stops it there when it is used."""
    it = moved("learned", delta=0.02, rounds=0)
    does = played(it.after)
    assert it.told["tau"] > 6
    for name, value in it.told.items():
        assert does[name] == pytest.approx(value, abs=2 / WORLDS), name


def marked(index: int) -> Scripted:
    """A policy that can be told from others."""
    return Scripted(jnp.full((1, 1, 1), float(index)))


class TestBest:
    """Which validated team is kept.

    δ = 0.1 and 900 worlds: on target means 0.9, what a certificate from 10,000 worlds needs (0.0049), and a standard
    error (0.01) more.
    """

    config = override(Config(), {"delta": 0.1, "validation_episodes": 900})

    def kept(self, monkeypatch, *results: tuple[float, float], polished: int = 10**6) -> int:
        """Index of the team that is kept after validations with these (accuracy, τ)."""
        monkeypatch.setattr(validation, "stopping_policy", lambda *_: None)
        monkeypatch.setattr(validation, "play_greedy", lambda *_: None)
        best = Best(marked(-1), jnp.int32(-1), jnp.float32(0), jnp.float32(PROBLEM.horizon), jnp.int32(0))
        for index, (accuracy, tau) in enumerate(results):
            measured = {"accuracy": jnp.float32(accuracy), "tau": jnp.float32(tau)}
            monkeypatch.setattr(validation, "measure", lambda *_, measured=measured: measured)
            polishing = index >= polished  # then the candidate is the best team, with a newer inference network
            policy = best.policy if polishing else marked(index)
            candidate = best._replace(policy=policy, inference=jnp.int32(index), iteration=jnp.int32(index + 1))
            best, _, _ = validation.validate(
                PROBLEM, self.config, candidate, best, None, keep=jnp.array(polishing), key=jax.random.key(0)
            )
        kept = int(best.policy.table[0, 0, 0])
        newest = len(results) - 1 if polished < len(results) else kept
        assert int(best.iteration) == newest + 1
        assert int(best.inference) == newest
        return kept

    def test_off_target_the_more_accurate_team_is_kept(self, monkeypatch):
        assert self.kept(monkeypatch, (0.6, 3.0), (0.8, 7.0), (0.7, 2.0)) == 1

    def test_on_target_the_faster_team_is_kept(self, monkeypatch):
        assert self.kept(monkeypatch, (0.95, 6.0), (0.92, 5.0), (0.99, 7.0)) == 1

    def test_a_team_on_target_beats_a_faster_one_off_target(self, monkeypatch):
        assert self.kept(monkeypatch, (0.85, 2.0), (0.92, 7.0), (0.88, 3.0)) == 1

    def test_a_certificate_must_be_likely(self, monkeypatch):
        """With 0.9085 or less it is not, so speed does not count yet."""
        assert self.kept(monkeypatch, (0.9085, 6.0), (0.908, 5.0)) == 0
        assert self.kept(monkeypatch, (0.91, 6.0), (0.909, 5.0)) == 1

    def test_a_team_that_is_polished_stays_with_the_newest_inference(self, monkeypatch):
        """From the third validation on it is polished: nothing faster takes its place, and it is judged again."""
        assert self.kept(monkeypatch, (0.95, 6.0), (0.95, 5.0), (0.93, 4.0), (0.92, 3.0), polished=2) == 1


@pytest.fixture(scope="module")
def family() -> Best:
    """Teams for δ = 0.2 and 0.05 out of a validation for 0.1."""
    config = override(Config(), SETTINGS | {"delta": 0.1, "deltas": (0.2, 0.05)})
    policy, nothing = moved("apart", 0.1).before, jnp.zeros(())
    first = Best(policy, Counts(), nothing, jnp.float32(8), jnp.int32(0))
    every = jax.tree.map(lambda x: jnp.broadcast_to(x, (2, *jnp.shape(x))), first)
    candidate = first._replace(iteration=jnp.int32(5))
    keep, key = jnp.array(False), jax.random.key(3)
    return once(lambda: validation.validate(PROBLEM, config, candidate, first, every, keep=keep, key=key)[1])


class TestFamily:
    """Teams for other δ out of the same play: one policy, other thresholds."""

    def test_the_smaller_delta_the_later_the_stop(self, family):
        assert np.all(np.asarray(family.accuracy) >= [0.8, 0.95])
        assert family.tau[0] < family.tau[1]

    def test_each_does_what_is_said_of_it(self, family):
        """On other worlds, within four standard errors of both."""
        for index, accuracy in enumerate(np.asarray(family.accuracy)):
            policy = jax.tree.map(lambda x, index=index: x[index], family.policy)
            assert played(policy)["accuracy"] == pytest.approx(accuracy, abs=4 * np.sqrt(2 * 0.16 / WORLDS))
