"""`to_pettingzoo` and `to_jaxmarl`."""

from typing import Any

import jax

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
    game = Game(built, _answering(built, inference), float(price))
    if inference is not None:
        _check_fits(game, inference)
    return game


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


def _check_fits(game: Game, given: TeamInference | InferenceNetwork | Team) -> None:
    """Refuse an inference or a team that was made for another problem."""
    problem, what = game.problem, "the team" if isinstance(given, Team) else "the inference"
    if isinstance(given, Team) and (apart := _differences(given.problem, problem)):
        raise UserError(f"the team is for another problem ({apart}): pass a team of this problem")
    try:
        scores = jax.eval_shape(lambda: game.reset(jax.random.key(0))).scores
    except UserError:
        raise
    except Exception as error:  # a network meets other shapes, in code of icmape or of the user
        raise UserError(
            f"{what} cannot read the data of this {_named(problem)}: {error!s:.200}; pass one of this problem"
        ) from error
    if scores.shape != problem.hypotheses.shape:
        raise UserError(
            f"{what} gives scores of shape {scores.shape}, but the answers of this {_named(problem)} have shape "
            f"{problem.hypotheses.shape}: pass one of this problem"
        )


def _differences(theirs: Problem, ours: Problem) -> str:
    """In what the problem of a team differs from that of the environment."""
    rows: list[tuple[str, Any, Any]] = [("problem", _named(theirs), _named(ours))]
    rows += [(name, getattr(theirs, name), getattr(ours, name)) for name in ("agents", "actions", "horizon")]
    rows += [("answers", theirs.hypotheses.shape, ours.hypotheses.shape)]
    return "; ".join(f"{name}: {its} of the team, {own} here" for name, its, own in rows if its != own)


def _named(problem: Problem) -> str:
    return type(problem.unwrapped).__name__
