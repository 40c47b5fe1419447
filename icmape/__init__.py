"""Decentralized pure exploration: teams that learn what to sample and when to stop.

team = icmape.train("bandit-quick")
print(team.evaluate())
team.save("team.safetensors")
"""

import icmape.search_path  # noqa: F401 (before all other imports)

# isort: split
from typing import TYPE_CHECKING, Any

from icmape.errors import UserError
from icmape.version import __version__

if TYPE_CHECKING:
    from icmape.api import compare, train
    from icmape.ecosystem import to_jaxmarl, to_pettingzoo
    from icmape.evaluation.metrics import Evaluation, evaluate
    from icmape.learning.config import Config
    from icmape.learning.presets import presets
    from icmape.play.answer import Answer
    from icmape.play.inference import ExactInference
    from icmape.play.policy import LocalPolicy, Round
    from icmape.play.stop import FixedLength, LearnedStop, Threshold
    from icmape.play.team import STOP, Team
    from icmape.play.team_files import load
    from icmape.problem import (
        BIT,
        Categorical,
        Centralized,
        Entry,
        Factored,
        Features,
        HypothesisSpace,
        Problem,
        Range,
        TopK,
        Unreliable,
        check_problem,
    )

__all__ = [
    "BIT",
    "STOP",
    "Answer",
    "Categorical",
    "Centralized",
    "Config",
    "Entry",
    "Evaluation",
    "ExactInference",
    "Factored",
    "Features",
    "FixedLength",
    "HypothesisSpace",
    "LearnedStop",
    "LocalPolicy",
    "Problem",
    "Range",
    "Round",
    "Team",
    "Threshold",
    "TopK",
    "Unreliable",
    "UserError",
    "__version__",
    "check_problem",
    "compare",
    "evaluate",
    "load",
    "presets",
    "to_jaxmarl",
    "to_pettingzoo",
    "train",
]

_LAZY = {
    "compare": "icmape.api",
    "train": "icmape.api",
    "to_jaxmarl": "icmape.ecosystem",
    "to_pettingzoo": "icmape.ecosystem",
    "Evaluation": "icmape.evaluation",
    "evaluate": "icmape.evaluation",
    "Config": "icmape.learning.config",
    "LocalPolicy": "icmape.play.policy",
    "Round": "icmape.play.policy",
    "presets": "icmape.learning.presets",
    **dict.fromkeys(
        (
            "BIT",
            "Categorical",
            "Centralized",
            "Entry",
            "Factored",
            "Features",
            "HypothesisSpace",
            "Problem",
            "Range",
            "TopK",
            "Unreliable",
            "check_problem",
        ),
        "icmape.problem",
    ),
    **dict.fromkeys(
        ("STOP", "Answer", "ExactInference", "FixedLength", "LearnedStop", "Team", "Threshold", "load"), "icmape.play"
    ),
}


def __getattr__(name: str) -> Any:
    """Import names when they are used, so that `import icmape` and the help of commands take no time."""
    import importlib

    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'icmape' has no attribute {name!r}")


def __dir__() -> list[str]:
    """All public names, including those that are imported lazily."""
    return __all__
