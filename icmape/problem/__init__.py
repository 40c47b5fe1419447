"""Problems: prior, dynamics, observations, hypotheses."""

from icmape.problem.centralized import Centralized
from icmape.problem.check import check_problem
from icmape.problem.contract import Features, Problem, arguments, check_worlds
from icmape.problem.entry import Entry
from icmape.problem.hypotheses import Categorical, Factored, HypothesisSpace, TopK
from icmape.problem.ranges import BIT, Range
from icmape.problem.unreliable import Unreliable

__all__ = [
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
    "arguments",
    "check_problem",
    "check_worlds",
]
