"""What is unknown: prior, dynamics, observations, hypotheses."""

from icmape.problems.adapters import Centralized
from icmape.problems.bandit import Bandit
from icmape.problems.checks import check_problem
from icmape.problems.hotspot import Hotspot
from icmape.problems.hypotheses import Categorical, Factored, HypothesisSpace, TopK
from icmape.problems.problem import Problem, View, arguments, check_worlds, inner_of, load_class
from icmape.problems.signal import Signal

__all__ = [
    "Bandit",
    "Categorical",
    "Centralized",
    "Factored",
    "Hotspot",
    "HypothesisSpace",
    "Problem",
    "Signal",
    "TopK",
    "View",
    "arguments",
    "check_problem",
    "check_worlds",
    "inner_of",
    "load_class",
]
