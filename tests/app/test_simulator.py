"""Rounds as programs: what chance draws is an input, and everything else is computed by the program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icmape.app.rounding import LARGEST, in_rows, rounded
from icmape.app.simulator import simulator
from icmape.errors import UserError
from icmape.problem import Problem
from icmape_agent.program import read_function
from tests.coins import Coins
from tests.support import build_preset, lively_team


class Tired(Coins):
    """Coins whose tosses are drawn by a key that the world changes."""

    def step(self, world, state, actions, *, key):
        return super().step(world, state, actions, key=jax.random.fold_in(key, world.hypothesis))


class Walking(Coins):
    """Coins with a state, and with draws in a loop and of several kinds."""

    def start(self, world, *, key):
        return jnp.int32(0), super().start(world, key=key)[1]

    def step(self, world, state, actions, *, key):
        first, second = jax.random.split(key)
        heads = super().step(world, (), actions, key=first)[1]
        return state + jax.random.randint(second, (), 0, 3) + jax.random.poisson(second, 2.0), heads


@pytest.mark.parametrize("problem", [Coins(agents=3), Walking(agents=2)], ids=["coins", "walking"])
def test_program_and_draws_give_what_step_gives(problem: Problem):
    check(problem, 20)


def test_crews_read_what_step_gives():
    check(build_preset("nitrate-synthetic"), 3)


def check(problem: Problem, rounds: int) -> None:
    key = jax.random.key(4)
    world = problem.sample(key=key)
    state = problem.start(world, key=key)[0]
    constants: dict[str, np.ndarray] = {}
    made = simulator(problem, world, state, constants)
    program = read_function(made.function, {name: np.asarray(value) for name, value in constants.items()})
    for number in range(rounds):
        step = jax.random.fold_in(key, number)
        actions = jax.random.randint(step, (problem.agents,), 0, problem.actions)
        expected = problem.step(world, state, actions, key=step)
        given = jax.tree.map(np.asarray, [*made.draw(step), *jax.tree.leaves((world, state, actions))])
        for found, wanted in zip(program(*given), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-3 if wanted.dtype == jnp.float16 else 1e-6)
        state = expected[0]


def test_draws_that_depend_on_the_world_are_refused():
    problem = Tired()
    key = jax.random.key(0)
    with pytest.raises(UserError, match="a browser cannot simulate Tired"):
        simulator(problem, problem.sample(key=key), (), {})


def test_a_matrix_in_8_bits_is_off_by_half_a_step_of_its_row_at_most():
    matrix = np.random.default_rng(0).normal(size=(7, 50)).astype(np.float32) * np.arange(7)[:, None].astype(np.float32)
    rows = in_rows(matrix)
    steps = np.abs(matrix).max(axis=1, keepdims=True) / LARGEST
    assert (np.abs(rows.values - matrix) <= steps * 0.501).all()
    np.testing.assert_array_equal(in_rows(rows.values).numbers, rows.numbers)
    assert (rows.values[0] == 0).all()


def test_small_matrices_keep_their_weights():
    team = lively_team()
    same, packed = rounded(team)
    assert packed == {}
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), team.policy, same.policy))
