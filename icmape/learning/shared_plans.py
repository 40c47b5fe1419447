"""Plans that several runs share: those of the same problem, seeds and settings are computed once.

A file has the form of a checkpoint. It holds all of a plan that training takes: tables, lengths, accuracy and the
inference networks.
"""

import hashlib
import io
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from icmape.errors import UserError
from icmape.io import write_atomically
from icmape.learning import train
from icmape.learning.checkpoints import pack_checkpoint, read_checkpoint
from icmape.learning.config import Config, Dual, Plan
from icmape.learning.plan import PlanFound
from icmape.networks.sizes import Network
from icmape.problem import Problem
from icmape.problem.spec import describe
from icmape.settings import to_dict
from icmape.version import __version__

log = logging.getLogger("icmape")

KEPT = ("delta", "deltas", "seeds", "max_grad_norm", "inference_lr", "posterior", "validation_episodes")
NETWORK = ("encoder", "hidden_size", "inference")


def for_plans(config: Config) -> Config:
    """The settings that a plan depends on. All others have their defaults, so nothing else can change it."""
    return Config(
        **{name: getattr(config, name) for name in KEPT},
        network=Network(**{name: getattr(config.network, name) for name in NETWORK}),
        dual=Dual(margin=config.dual.margin),
        plan=replace(config.plan, follow_prob=Plan.follow_prob),  # it says how the plan is used
    )


def plan_key(problem: Problem, config: Config) -> str:
    """A hash of what plans are computed from: problem, settings with seeds, version.

    Not of the problem's parameters, whose last bits depend on the device, nor of data of this machine: plans from other
    measurements belong in other files.
    """
    about = [__version__, describe(problem, local=False), to_dict(for_plans(config))]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


def write_shared(path: Path, problem: Problem, config: Config, plans: PlanFound) -> None:
    """Write the plans of all seeds."""
    leaves = io.BytesIO()
    eqx.tree_serialise_leaves(leaves, plans)
    header = {"version": __version__, "plan": plan_key(problem, config), "rounds": plans.table.shape[1]}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, pack_checkpoint(header, leaves.getvalue()))


def read_shared(path: Path, problem: Problem, config: Config) -> PlanFound | None:
    """The plans of a file, to the bit. None if there is none, or if it is damaged or of other plans, which is told."""
    if not path.exists():
        return None
    try:
        stored = read_checkpoint(path)
        if stored.header.get("plan") != plan_key(problem, config):
            raise UserError(f"{path} holds other plans")
        plans = stored.states(_like(problem, config, stored.header["rounds"]))
    except (UserError, KeyError) as error:
        log.warning("%s: they are computed again", error)
        return None
    return jax.tree.map(jnp.asarray, plans)


def _like(problem: Problem, config: Config, rounds: int) -> Any:
    """Structure, shapes and types of plans of this length."""
    shared = for_plans(config).for_programs()
    states = train.begin_plans.eval_shape(problem, shared, rounds, jnp.asarray(config.seeds, jnp.int32))
    return train.choose_plans.eval_shape(problem, shared, states)
