"""Fixed schedules of a bandit: their accuracy in closed form, and a search for the best loads."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer, Key

from icmape.errors import UserError
from icmape.zoo.bandit.allocation import actions_of, allocate
from icmape.zoo.bandit.bandit import Bandit

STARTS = 128  # random schedules that are improved side by side
DRAWS = 20_000  # of capacities, where a prior couples them


class Plan(NamedTuple):
    """Loads of every round, and the accuracy of the exact posterior after them."""

    loads: Int[np.ndarray, "rounds arms"]
    accuracy: float


def arm_accuracy(problem: Bandit, tries: Integer[Array, "*batch players"]) -> Float[Array, "*batch"]:
    """Accuracy of the exact posterior for an arm that was tried tries[l-1] times with l players."""
    return jnp.mean(accuracy_by_capacity(problem, tries), axis=-1)


def accuracy_by_capacity(problem: Bandit, tries: Integer[Array, "*batch players"]) -> Float[Array, "*batch players"]:
    """The same for each true capacity.

    With equally likely capacities the evidence for C = c only falls as more failures are put down to chance, so the
    most probable capacity is the largest load that ever paid (1 if none did), whatever the prior of the means. It is
    right about c = 1 always, and about any other c unless all m = c · tries readings at load c failed: E[(1-μ)^m].
    """
    load = jnp.broadcast_to(jnp.arange(1, problem.players + 1), tries.shape)
    all_failed = jnp.exp(problem.log_evidence[0, load * tries])
    return jnp.where(load == 1, 1.0, 1 - all_failed)


@jax.jit
def schedule_accuracy(problem: Bandit, loads: Integer[Array, "rounds arms"]) -> Float[Array, ""]:
    """Probability that the posterior is right about every arm after these rounds, in any order.

    Exact for independent capacities. For a Dirichlet prior, which couples them, the mean over drawn capacities.
    """
    tries = _tries(problem, loads.astype(jnp.int32))
    if problem.posterior == "exact":
        return jnp.prod(arm_accuracy(problem, tries))
    keys = jax.random.split(jax.random.key(0), DRAWS)
    capacities = jax.vmap(lambda key: problem.sample(key=key).hypothesis.astype(jnp.int32))(keys)
    right = accuracy_by_capacity(problem, tries)
    return jnp.mean(jnp.prod(right[jnp.arange(problem.arms)[None, :], capacities], axis=1))


def best_plan(problem: Bandit, rounds: int) -> Plan:
    """The best loads found for so many rounds.

    The best loads of one round given all others are found exactly (a knapsack over arms). Rounds are improved in turn
    until none changes, from many random starts. The result is a local optimum.
    """
    if not 1 <= rounds < problem.horizon:
        raise UserError(
            f"a schedule has 1 to {problem.horizon - 1} rounds of data (the horizon is {problem.horizon}, its last "
            f"round is the stop); given {rounds}"
        )
    loads = _search(problem, jnp.int32(rounds), jax.random.key(rounds))
    return Plan(np.asarray(loads)[:rounds], float(schedule_accuracy(problem, loads)))


def whole_schedule(problem: Bandit, rounds: int) -> Int[Array, "all_rounds players"]:
    """Actions up to the horizon: the best plan of this many rounds, largest loads first, then a greedy extension."""
    ordered = sorted(best_plan(problem, rounds).loads.tolist(), key=lambda row: -max(row))
    loads = np.zeros((problem.horizon - 1, problem.arms), np.int32)
    loads[:rounds] = ordered
    return jax.vmap(partial(actions_of, players=problem.players))(_prolong(problem, jnp.asarray(loads), rounds))


@jax.jit
def _search(problem: Bandit, rounds: Int[Array, ""], key: Key[Array, ""]) -> Int[Array, "all_rounds arms"]:
    loads, values = jax.vmap(partial(_climb, problem, rounds))(jax.random.split(key, STARTS))
    return loads[jnp.argmax(values)]


@jax.jit
def _prolong(
    problem: Bandit, loads: Int[Array, "all_rounds arms"], rounds: Int[Array, ""] | int
) -> Int[Array, "all_rounds arms"]:
    """Fill the empty rows from `rounds` on greedily."""

    def fill(index: Int[Array, ""], loads: Int[Array, "all_rounds arms"]) -> Int[Array, "all_rounds arms"]:
        return loads.at[index].set(allocate(_worth(problem, _tries(problem, loads))))

    return jax.lax.fori_loop(rounds, problem.horizon - 1, fill, loads)


def _climb(
    problem: Bandit, rounds: Int[Array, ""], key: Key[Array, ""]
) -> tuple[Int[Array, "all_rounds arms"], Float[Array, ""]]:
    """Improve a random schedule round by round; rows from `rounds` on are empty."""
    actions = jax.random.randint(key, (problem.horizon - 1, problem.players), 0, problem.arms)
    exists = jnp.arange(problem.horizon - 1) < rounds
    start = jnp.where(exists[:, None], jax.vmap(problem.loads)(actions), 0)

    def improve(index: Int[Array, ""], loads: Int[Array, "all_rounds arms"]) -> Int[Array, "all_rounds arms"]:
        other_tries = _tries(problem, loads.at[index].set(0))
        return loads.at[index].set(allocate(_worth(problem, other_tries)))

    def sweep(carry: tuple) -> tuple:
        loads, value, _ = carry
        improved = jax.lax.fori_loop(0, rounds, improve, loads)
        return improved, _value(problem, improved), value

    improving = lambda carry: carry[1] > carry[2] + 1e-6  # noqa: E731
    loads, value, _ = jax.lax.while_loop(improving, sweep, (start, _value(problem, start), jnp.float32(-jnp.inf)))
    return loads, value


def _worth(problem: Bandit, tries: Int[Array, "arms players"]) -> Float[Array, "arms loads"]:
    """Log-accuracy of each arm if it had one more round with 0..N players."""
    more = jnp.eye(problem.players + 1, problem.players, -1, dtype=jnp.int32)
    return jnp.log(arm_accuracy(problem, tries[:, None, :] + more[None]))


def _value(problem: Bandit, loads: Int[Array, "rounds arms"]) -> Float[Array, ""]:
    return jnp.sum(jnp.log(arm_accuracy(problem, _tries(problem, loads))))


def _tries(problem: Bandit, loads: Int[Array, "rounds arms"]) -> Int[Array, "arms players"]:
    """How often each arm has each load from 1 to N."""
    return jnp.sum(jax.nn.one_hot(loads - 1, problem.players, dtype=jnp.int32), axis=0)
