"""Decentralized pure exploration: teams that learn what to sample and when to stop.

team = icmape.train("bandit-quick")
print(team.evaluate())
team.save("team.safetensors")
"""

import os
from typing import TYPE_CHECKING, Any

# fields are fitted by many small factorisations, for which a BLAS with several threads mostly waits; it reads this once
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.10.0"

from icmape.errors import UserError
from icmape.problems import Categorical, Centralized, Factored, HypothesisSpace, Problem, TopK, View, check_problem

if TYPE_CHECKING:
    from icmape.api import compare, train
    from icmape.evaluation import Evaluation, evaluate
    from icmape.learning.config import Config
    from icmape.learning.policy import LocalPolicy, Round
    from icmape.presets import PRESETS
    from icmape.teams import STOP, Answer, ExactInference, FixedLength, LearnedStop, Team, Threshold, load

__all__ = [
    "PRESETS",
    "STOP",
    "Answer",
    "Categorical",
    "Centralized",
    "Config",
    "Evaluation",
    "ExactInference",
    "Factored",
    "FixedLength",
    "HypothesisSpace",
    "LearnedStop",
    "LocalPolicy",
    "Problem",
    "Round",
    "Team",
    "Threshold",
    "TopK",
    "UserError",
    "View",
    "check_problem",
    "compare",
    "evaluate",
    "load",
    "train",
]

_LATER = {
    "compare": "icmape.api",
    "train": "icmape.api",
    "Evaluation": "icmape.evaluation",
    "evaluate": "icmape.evaluation",
    "Config": "icmape.learning.config",
    "LocalPolicy": "icmape.learning.policy",
    "Round": "icmape.learning.policy",
    "PRESETS": "icmape.presets",
    **dict.fromkeys(
        ("STOP", "Answer", "ExactInference", "FixedLength", "LearnedStop", "Team", "Threshold", "load"), "icmape.teams"
    ),
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
