"""Whether the processes of a run do the same: nothing else would notice if they did not."""

import dataclasses
import hashlib
import json

import jax
import numpy as np

from icmape.errors import UserError
from icmape.learning.checkpoints import Checkpoint
from icmape.learning.config import Config
from icmape.learning.policies import Policies
from icmape.play.processes import differing
from icmape.problem import Problem
from icmape.problem.spec import problem_digest
from icmape.settings import to_dict
from icmape.version import __version__


def check_agreement(problem: Problem, config: Config, policies: Policies, checkpoint: Checkpoint | None = None) -> None:
    """Raise `UserError` in all processes of a run that were given different things. All of them must call this.

    Learning rates and seeds are inputs of one program, so processes with different ones would train on, each with
    other networks. Limits of time and paths of data may differ.
    """
    if jax.process_count() == 1:
        return
    settings = to_dict(dataclasses.replace(config, minutes=None, checkpoint_minutes=0.0))
    arrays = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(policies)]
    parts = {
        "versions": f"{__version__} {jax.__version__}".encode(),
        "settings": json.dumps(settings, sort_keys=True).encode(),
        "problems": problem_digest(problem).encode(),
        "policies": hashlib.sha256(b"".join(arrays)).digest(),
        "checkpoints": b"none" if checkpoint is None else hashlib.sha256(checkpoint.leaves).digest(),
    }
    if names := differing(parts):
        raise UserError(
            f"the processes of this run have different {', '.join(names)}: give all of them the same command, except "
            "for its number, and the same folder"
        )
