"""`to_pettingzoo` and `to_jaxmarl`."""

from typing import Any

from icmape.ecosystem.game import Game
from icmape.errors import UserError
from icmape.extras import extra_module
from icmape.learning.presets import preset
from icmape.networks import InferenceNetwork
from icmape.play.inference import BeliefInference, ExactInference, NetworkInference, TeamInference
from icmape.play.team import Team
from icmape.problem import Problem, check_problem, check_worlds

PRICE = 0.05
Answering = TeamInference | InferenceNetwork | Team | None


def to_pettingzoo(problem: str | Problem, inference: Answering = None, *, price: float = PRICE) -> Any:
    """A PettingZoo ParallelEnv of a problem, or of a preset's problem.

    `inference` answers when an episode ends, and its P(H*|D) is the potential of the reward: an inference, a team (its
    inference), or by default the exact posterior. `price` is that of a round. Rules and rewards: `ecosystem/game.py`.
    """
    module = extra_module("icmape.ecosystem.pettingzoo_environment", "pettingzoo", "to_pettingzoo")
    return module.Environment(make_game(problem, inference, price))


def to_jaxmarl(problem: str | Problem, inference: Answering = None, *, price: float = PRICE) -> Any:
    """A JaxMARL MultiAgentEnv of a problem, or of a preset's problem. Arguments: as of `to_pettingzoo`."""
    module = extra_module("icmape.ecosystem.jaxmarl_environment", "jaxmarl", "to_jaxmarl")
    return module.Environment(make_game(problem, inference, price))


def make_game(problem: str | Problem, inference: Answering, price: float) -> Game:
    """The game of a problem, after checks."""
    if isinstance(problem, type):
        raise UserError(f"given the class {problem.__name__}; pass an instance: {problem.__name__}()")
    built = preset(problem).build() if isinstance(problem, str) else problem
    check_problem(built, simulate=False)
    check_worlds(built)
    if not price >= 0:
        raise UserError(f"price must be at least 0; given {price}")
    return Game(built, _answering(built, inference), float(price))


def _answering(problem: Problem, inference: Answering) -> TeamInference:
    """The inference that gives the answers."""
    if isinstance(inference, Team):
        return inference.inference
    if isinstance(inference, InferenceNetwork):
        return NetworkInference(inference)
    if isinstance(inference, NetworkInference | BeliefInference):
        return inference
    if inference is not None:
        raise UserError(f"inference must be an inference or a team; given {type(inference).__name__}")
    if problem.posterior == "none":
        raise UserError(
            f"{type(problem).__name__} has no exact posterior to answer with: pass an inference, or a team that has one"
        )
    return ExactInference()
