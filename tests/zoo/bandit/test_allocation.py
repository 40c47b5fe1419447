"""Sharing players out: the knapsack finds what trying every split finds."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.zoo.bandit.allocation import actions_of, allocate


@pytest.mark.parametrize(("arms", "players"), [(1, 3), (2, 1), (3, 5), (4, 4)])
def test_no_split_is_worth_more(arms, players):
    worths = np.random.default_rng(0).standard_normal((20, arms, players + 1)).astype(np.float32)
    splits = [s for s in itertools.product(range(players + 1), repeat=arms) if sum(s) == players]
    found = np.asarray(jax.jit(jax.vmap(allocate))(jnp.asarray(worths)))
    for worth, loads in zip(worths, found, strict=True):
        value = {split: sum(worth[arm, load] for arm, load in enumerate(split)) for split in splits}
        assert value[tuple(loads.tolist())] == pytest.approx(max(value.values()))


def test_players_go_where_the_loads_say():
    np.testing.assert_array_equal(actions_of(jnp.array([2, 0, 3]), 5), [0, 0, 2, 2, 2])
    np.testing.assert_array_equal(actions_of(jnp.array([0, 1, 0]), 1), [1])
