"""What many tests share: networks without the cost of drawing them, and calls that compile once."""

import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from icmape.compiling import ONCE, on_cpu
from icmape.evaluation.tally import Tally
from icmape.learning.presets import preset
from icmape.networks import Actors, Inference
from icmape.play.inference import NetworkInference
from icmape.play.policy import LearnedPolicy, Round
from icmape.play.stop import LearnedStop
from icmape.play.team import Team
from icmape.problem import Problem
from icmape.zoo.bandit.bandit import Bandit


def drawn(make: Callable[[], Any], seed: int = 0, scale: float = 0.5) -> Any:
    """What `make` would build, with normal weights drawn by NumPy: a tenth of the time, as nothing is compiled."""
    rng = np.random.default_rng(seed)
    skeleton = eqx.filter_eval_shape(make)
    is_shape = lambda x: isinstance(x, jax.ShapeDtypeStruct)  # noqa: E731
    return jax.tree.map(
        lambda s: jnp.asarray(scale * rng.standard_normal(s.shape), s.dtype) if is_shape(s) else s,
        skeleton,
        is_leaf=is_shape,
    )


QUICK_TO_COMPILE = on_cpu(ONCE) or {}
"""Options for large programs of which a test needs little."""
RUNS_LONG = QUICK_TO_COMPILE | {"xla_backend_optimization_level": 1}
"""For what runs longer than it is compiled: nothing else is optimised in tests (conftest.py)."""


def once(function: Callable, *args: Any) -> Any:
    """What a large function returns that is called only once: compiled quickly rather than well."""
    return jax.jit(function).lower(*args).compile(compiler_options=QUICK_TO_COMPILE)(*args)


unroll = eqx.filter_jit(lambda module, *args: module.unroll(*args))
step = eqx.filter_jit(lambda module, *args: module.step(*args))


class Scripted(eqx.Module):
    """A policy whose scores are written down: a table of rounds, agents and choices."""

    table: Float[Array, "rounds agents choices"]

    def start(self) -> tuple:
        return ()

    def decide(self, state: tuple, seen: Round, *, key: Key[Array, ""]) -> tuple:
        return state, self.table[seen.number]


def script(problem: Problem, actions: Sequence[Sequence[int]]) -> Scripted:
    """The policy that takes these actions; rounds behind the last row repeat it."""
    rows = [*actions, *[actions[-1]] * (problem.horizon - len(actions))]
    return Scripted(jax.nn.one_hot(jnp.asarray(rows), problem.actions + 1))


@cache
def small_bandit() -> Bandit:
    """Two arms, three players."""
    return Bandit(arms=2, players=3, horizon=7)


@cache
def lively_actors(shared: bool = True) -> Actors:
    """Untrained actors for the small bandit whose episodes differ in actions and in length."""
    seed, stop_bias = (4, -6.0) if shared else (2, -4.0)
    make = partial(Actors, small_bandit(), 6, "paper+last", 0.0, shared, key=jax.random.key(0))
    actors = drawn(make, seed, scale=1.5)
    return eqx.tree_at(lambda a: a.actor.head.bias, actors, replace_fn=lambda b: b.at[..., -1].set(stop_bias))


@cache
def lively_team() -> Team:
    """Such actors, each with weights of its own, and an untrained inference whose answers differ in confidence."""
    make = partial(Inference, small_bandit(), 6, "paper+last", key=jax.random.key(0))
    inference, card = NetworkInference(drawn(make, seed=1)), json.dumps({"seed": 3, "note": "τ"})
    return Team(
        small_bandit(), LearnedPolicy(lively_actors(shared=False)), LearnedStop(), inference, delta=0.05, card=card
    )


@cache
def build_preset(name):
    """A preset's problem; made-up measurements stand for those that a preset needs."""
    chosen = preset(name)
    return chosen.build(**({"data": None, "synthetic": 0} if "data" in chosen.arguments else {}))


def tally(right: int, stops: Sequence[int]) -> Tally:
    """Episodes of which so many ended with a right answer, by the number that stopped in each round."""
    counts = Tally(len(stops))
    counts.stops += np.array(stops)
    counts.team.right, counts.team.episodes = right, sum(stops)
    return counts
