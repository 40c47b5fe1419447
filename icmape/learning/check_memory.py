"""The memory that a training run takes at least, from shapes: nothing is allocated."""

from typing import Any

import equinox as eqx
import jax

from icmape.errors import UserError
from icmape.learning.config import Config
from icmape.memory import check_fits
from icmape.networks import Actors, make_inference
from icmape.problem import Problem
from icmape.problem.check import tree_bytes
from icmape.problem.sizes import sizes_of

COPIES = 4  # of a network: weights, two moments of Adam, and a slow copy


def check_memory(config: Config, problem: Problem) -> None:
    """Raise `UserError` with an estimate if networks, replay buffer or episodes cannot fit in memory.

    Other faults of the problem are left to `check_problem`.
    """
    try:
        _check_parts(config, problem)
    except UserError:
        raise
    except Exception:  # the author's code may raise anything
        return


def _check_parts(config: Config, problem: Problem) -> None:
    sizes, rounds = sizes_of(problem), min(problem.horizon, config.max_rounds or problem.horizon)
    networks = COPIES * _network_bytes(config, problem)
    members = len(config.seeds) * config.population_size
    replay = float(config.buffer_size) * sizes.stored
    history = float(rounds) * (sizes.features + 4 * config.network.hidden_size * (problem.agents + 1))
    playing = max(
        ("num_envs", config.num_envs),
        ("validation_episodes", config.validation_episodes),
        ("learning_starts", config.learning_starts),
        ("plan.num_envs", config.plan.num_envs * config.plan.num_plans if config.plan.iterations else 0),
        key=lambda setting: setting[1],
    )
    parts: tuple[tuple[str, float, str], ...] = (
        (f"networks of hidden_size {config.network.hidden_size:,}", networks, "choose a smaller network.hidden_size"),
        (f"a replay buffer of {config.buffer_size:,} episodes", replay, "choose a smaller buffer_size"),
        (f"{playing[1]:,} episodes at once", float(playing[1]) * (sizes.stored + sizes.played), f"lower {playing[0]}"),
        (f"a batch of {config.batch_size:,} episodes", config.batch_size * history, "lower batch_size"),
    )
    for what, size, way_out in parts:
        check_fits(what, size, way_out)
    together = members * (networks + replay) + parts[2][1] + parts[3][1]
    check_fits(f"the training of {members:,} teams", together, "train fewer at a time, or lower buffer_size")


def _network_bytes(config: Config, problem: Problem) -> int:
    """Weights of the actors and the inference network."""
    net = config.network

    def make() -> Any:
        key = jax.random.key(0)
        actors = Actors(problem, net.hidden_size, net.encoder, 0.0, net.share_weights, key=key)
        return actors, make_inference(problem, net.hidden_size, net.encoder, net.inference, key=key)

    shapes = eqx.filter(eqx.filter_eval_shape(make), lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    return tree_bytes(shapes)
