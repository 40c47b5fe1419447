"""Decentralized pure exploration: teams that learn what to sample and when to stop.

team = icmape.train("bandit-quick")
print(team.evaluate())
team.save("team.safetensors")
"""

import os
from typing import TYPE_CHECKING, Any

# fields are fitted by many small factorisations, for which a BLAS with several threads mostly waits; it reads this once
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.7.0"

from icmape.errors import UserError
from icmape.problems import Categorical, Centralized, Factored, HypothesisSpace, Problem, TopK, View, check_problem

if TYPE_CHECKING:
    from icmape.api import train
    from icmape.evaluation import Evaluation, evaluate
    from icmape.learning.config import Config
    from icmape.presets import PRESETS
    from icmape.teams import STOP, Answer, Team, load

__all__ = [
    "PRESETS",
    "STOP",
    "Answer",
    "Categorical",
    "Centralized",
    "Config",
    "Evaluation",
    "Factored",
    "HypothesisSpace",
    "Problem",
    "Team",
    "TopK",
    "UserError",
    "View",
    "check_problem",
    "evaluate",
    "load",
    "train",
]

_LATER = {
    "train": "icmape.api",
    "Evaluation": "icmape.evaluation",
    "evaluate": "icmape.evaluation",
    "Config": "icmape.learning.config",
    "PRESETS": "icmape.presets",
    "STOP": "icmape.teams",
    "Answer": "icmape.teams",
    "Team": "icmape.teams",
    "load": "icmape.teams",
}


def __getattr__(name: str) -> Any:
    """Names that need more than the learning core's dependencies are imported when they are asked for."""
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'icmape' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, those loaded later included."""
    return __all__
