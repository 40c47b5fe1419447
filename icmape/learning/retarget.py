"""Adapt a trained team to another δ by moving its stopping threshold, without training."""

import json
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from icmape.errors import UserError
from icmape.learning import validation
from icmape.learning.algorithms import Scalar
from icmape.learning.config import Config
from icmape.learning.validation import Best, needed_accuracy
from icmape.networks import InferenceNetwork
from icmape.play.episodes import check_episodes, check_seed
from icmape.play.inference import NetworkInference
from icmape.play.policy import LearnedPolicy
from icmape.play.stop import LearnedStop
from icmape.play.team import Team
from icmape.problem import Problem

WORLDS = 32768
STREAM = 2**30 + 11  # worlds that training, evaluation and certificates do not use


def retarget(
    team: Team,
    delta: float | None = None,
    *,
    worlds: int = WORLDS,
    seed: int = 0,
    certificate_worlds: int = Config.certificate_worlds,
) -> Team:
    """The team with the lowest stopping threshold that reaches accuracy 1-δ (default: its own δ).

    It aims above 1-δ so that nine in ten certificates on `certificate_worlds` worlds are granted.
    Its actions do not change: they remain optimized for the dual variable, and so for the δ, of its training.
    """
    delta = team.delta if delta is None else delta
    if not 0 < delta < 1:
        raise UserError(f"delta must lie strictly between 0 and 1; given {delta}")
    for name, number in (("worlds", worlds), ("certificate_worlds", certificate_worlds)):
        if number < 1:
            raise UserError(f"{name} must be at least 1; given {number}")
    check_seed(seed)
    check_episodes(team.problem, worlds)
    if not 0 <= seed < 2**30:
        raise UserError(f"seed must lie in 0..{2**30 - 1}; given {seed}")
    learned = isinstance(team.policy, LearnedPolicy) and isinstance(team.stop, LearnedStop)
    if not (learned and isinstance(team.inference, NetworkInference)):
        raise UserError("only teams whose policy, stop and inference were learned have stops to be moved")
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), STREAM), worlds)
    moved = _moved(team.problem, team.policy, team.inference.network, jnp.float32(delta), keys, certificate_worlds)
    accuracy, tau = float(moved.accuracy), float(moved.tau)
    needed = float(needed_accuracy(delta, certificate_worlds))
    if accuracy < needed:
        raise UserError(
            f"no threshold of its stops gives accuracy {needed:.4f}, which δ = {delta:g} takes (with its stops as they "
            f"are: {accuracy:.4f}): train one with --delta {delta:g}"
        )
    card = json.loads(team.card)
    card["retargeted"] = {
        "delta": delta,
        "from_delta": team.delta,
        "worlds": worlds,
        "seed": seed,
        "certificate_worlds": certificate_worlds,
        "accuracy": round(accuracy, 4),
        "tau": round(tau, 3),
    }
    return Team(team.problem, moved.policy, team.stop, team.inference, delta, json.dumps(card))


@partial(jax.jit, static_argnames="certificate_worlds")
def _moved(
    problem: Problem,
    policy: LearnedPolicy,
    inference: InferenceNetwork,
    delta: Scalar,
    keys: Key[Array, "worlds"],
    certificate_worlds: int,
) -> Best:
    seen = validation.watch_stops(problem, Config(), policy, inference, keys)
    team = Best(policy, inference, jnp.zeros(()), jnp.zeros(()), jnp.int32(1))
    return validation.move_stops(team, seen, delta, certificate_worlds)[0]
