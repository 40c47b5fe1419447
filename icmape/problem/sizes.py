"""The memory that episodes of a problem take, estimated from shapes: nothing is allocated."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from icmape.errors import UserError
from icmape.memory import check_fits
from icmape.problem.check import tree_bytes
from icmape.problem.contract import Problem

MOST_ACTIONS = 2**15 - 2  # STOP is the number after the last action, and actions are stored in 16 bits


class Sizes(NamedTuple):
    """Bytes of one episode."""

    stored: int  # actions and observations of all rounds
    played: int  # world, state, memories and features of a round
    features: int  # of all agents and the team, in a round


def sizes_of(problem: Problem) -> Sizes:
    """The sizes of an episode; raises `UserError` if one alone does not fit in memory."""
    name = type(problem).__name__
    if problem.actions > MOST_ACTIONS:
        raise UserError(f"{name} has {problem.actions:,} actions; at most {MOST_ACTIONS:,} can be stored: take fewer")

    def begin() -> tuple:
        key = jax.random.key(0)
        world = problem.sample(key=key)
        state, first = problem.start(world, key=key)
        memories = jax.vmap(problem.init_memory)(jnp.arange(problem.agents), first)
        return first, (world, state, memories), (jax.vmap(problem.features)(memories), problem.team_features(memories))

    try:
        first, held, features = map(tree_bytes, jax.eval_shape(begin))
    except OverflowError as error:
        raise UserError(f"a size of this {name} is beyond what 32 bits count ({error!s:.120}): lower it") from error
    stored = problem.horizon * (first + 2 * problem.agents + 1)
    scores = 4 * math.prod(problem.hypotheses.shape)
    sizes = Sizes(stored, held + features + scores, features)
    check_fits(f"one episode of this {name}", stored + sizes.played, "choose smaller sizes")
    return sizes


def check_size(problem: Problem) -> Problem:
    """The problem, if an episode of it fits in memory. Other faults are left to `check_problem`."""
    try:
        sizes_of(problem)
    except UserError:
        raise
    except Exception:  # the author's code may raise anything
        return problem
    return problem
