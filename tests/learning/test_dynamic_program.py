"""A problem with a known optimum: the rewards keep it, and training finds it.

Two coins, one agent, eight rounds (tests/coins.py), a fixed price per round. Dynamic programming over (heads, tails)
gives the best stopping rule: it stops as soon as one side leads by two.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.learning.returns import confidence_rewards, episode_return
from icmape.problem import Features
from tests.coins import chances, every_history, solve
from tests.training import COINS, COINS_CONFIG, COST, advance, start

DELTA = COINS_CONFIG.delta
PAPERS = solve(COINS, COST, DELTA, shaped=False)


def test_shaping_keeps_the_best_stopping_rule():
    shaped = solve(COINS, COST, DELTA, shaped=True)
    assert shaped.stops == PAPERS.stops
    assert shaped.value == pytest.approx(PAPERS.value + (1 - DELTA) - 0.5, abs=1e-12)  # r_0 = 1/2 without data


def test_the_best_rule_waits_for_a_lead_of_two():
    for (heads, tails), stops in PAPERS.stops.items():
        assert stops == (abs(heads - tails) >= 2)
    assert min(PAPERS.margin.values()) > 0.03  # no decision is a close call


class Played(NamedTuple):
    """Every possible episode of one team, weighted by its probability: no sampling error."""

    stop: np.ndarray  # histories
    wants_stop: np.ndarray  # histories, rounds
    decision: np.ndarray  # histories, rounds
    weight: np.ndarray  # histories
    heads: np.ndarray  # histories, rounds
    tails: np.ndarray


def play_all(actors, inference) -> Played:
    tosses, weight = every_history(COINS)
    counts = [np.pad(np.cumsum(tosses == side, axis=1), ((0, 0), (1, 0))) for side in (1, -1)]
    memories = jnp.asarray(np.stack(counts, axis=-1), jnp.int32)  # histories, rounds, 2

    @eqx.filter_jit
    def decide(actors, inference):
        tokens = jax.vmap(jax.vmap(COINS.features))(memories).token
        scores = jax.vmap(lambda t: actors.unroll(Features(t[None]))[0])(tokens)
        decisions = jax.vmap(lambda t: jax.vmap(COINS.hypotheses.decide)(inference.unroll(Features(t))))(tokens)
        return scores[..., -1] > scores[..., 0], decisions

    wants, decision = (np.asarray(x) for x in decide(actors, inference))
    forced = wants.copy()
    forced[:, -1] = True
    return Played(forced.argmax(1), wants, decision, weight, *counts)


def value_of(played: Played) -> float:
    """The paper's objective: probability of a right answer minus (1-δ), minus the price of the rounds."""
    total = 0.0
    for row, stop in enumerate(played.stop):
        belief, _ = chances(COINS, int(played.heads[row, stop]), int(played.tails[row, stop]))
        right = belief if played.decision[row, stop] == 1 else 1 - belief
        total += played.weight[row] * (right - (1 - DELTA) - COST * stop)
    return total


def agreement(played: Played) -> float:
    """Share of visited states in which the team stops or goes on as the dynamic program does."""
    same = visits = 0.0
    for row, stop in enumerate(played.stop):
        for t in range(min(stop + 1, COINS.horizon - 1)):
            best = PAPERS.stops[int(played.heads[row, t]), int(played.tails[row, t])]
            visits += played.weight[row]
            same += played.weight[row] * (played.wants_stop[row, t] == best)
    return same / visits


def test_the_value_of_the_best_rule_played_out_is_the_dynamic_programs():
    """The yardstick itself: its two halves (backward induction, forward enumeration) agree, and so do our returns."""
    tosses, weight = every_history(COINS)
    assert weight.sum() == pytest.approx(1.0)
    total = 0.0
    for row, chance in zip(tosses, weight, strict=True):
        confidence, stop = [], None
        for t in range(COINS.horizon):
            heads, tails = int((row[:t] > 0).sum()), int((row[:t] < 0).sum())
            belief, _ = chances(COINS, heads, tails)
            confidence.append(max(belief, 1 - belief))
            if stop is None and (t == COINS.horizon - 1 or PAPERS.stops[heads, tails]):
                stop = t
        rewards = returns_of(jnp.asarray(confidence, jnp.float32))
        total += chance * float(rewards[stop])
    assert total == pytest.approx(PAPERS.value, abs=1e-5)


@jax.jit
def returns_of(confidence: jnp.ndarray) -> jnp.ndarray:
    """What an episode pays that stops in each round, by icmape's rewards."""
    rewards = confidence_rewards(confidence, jnp.float32(COST), DELTA, shaped=False)
    return jax.vmap(lambda stop: episode_return(rewards, stop))(jnp.arange(COINS.horizon))


def test_training_finds_the_best_rule():
    """TD3 with the price held fixed stops as the dynamic program does and loses next to nothing against it."""
    states = start(1, 2, 3)
    only_one = states._replace(fault=jnp.array([0, 1, 1]))  # seeds that have failed cost no time
    states, _ = advance(only_one, 0, COINS_CONFIG.iterations)
    team = jax.tree.map(lambda x: x[0], (states.learner.target_actors, states.learner.slow_inference))
    played = play_all(*team)
    assert agreement(played) >= 0.95
    assert value_of(played) >= PAPERS.value - 0.015
    assert value_of(played) <= PAPERS.value + 1e-6  # nothing can be better: the yardstick holds
