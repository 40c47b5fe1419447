"""Validation moves the stops of a team to the target: as early as accuracy allows, by one threshold for all."""

from functools import cache
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning import train
from icmape.learning.config import Config, override
from icmape.learning.policy import LearnedPolicy
from icmape.learning.rollout import play_greedy
from icmape.networks import Actors, InferenceNetwork
from tests.coins import Coins
from tests.support import drawn, once

PROBLEM, WORLDS = Coins(agents=2, actions=2, horizon=8), 900
KEYS = jax.random.split(jax.random.key(0), WORLDS)
SETTINGS = {"validation_worlds": WORLDS, "rounds": 6, "plan.iterations": 0}


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
    after, told = once(lambda: train.move_stops(PROBLEM, config, before, Counts(), KEYS))
    return Moved(before, after, {name: float(x) for name, x in told.items()})


@jax.jit
def play(policy: LearnedPolicy) -> dict:
    """What a team does in the same worlds, with the stops that it has."""
    return train.measure(PROBLEM, Counts(), play_greedy(PROBLEM, policy, KEYS), jnp.ones(WORLDS, bool))


def played(policy: LearnedPolicy) -> dict[str, float]:
    return {name: float(x) for name, x in play(policy).items()}


@pytest.mark.parametrize("stop", ["zero", "apart"])
def test_stops_come_as_early_as_accuracy_allows(stop):
    """0.9 and what a certificate needs (0.0049), and a standard error of 900 worlds (0.01)."""
    it = moved(stop, delta=0.1)
    needed = 0.9 + 0.3 * (1.645 / 100 + 1 / 30)
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
